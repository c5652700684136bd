# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus beside the cluster, for each test."""

from pathlib import Path

import pytest
from harness.cluster import Cluster
from harness.product import Product
from harness.prometheus import monitoring


@pytest.fixture
def monitored(product: Product, cluster: Cluster, tmp_path: Path):
    """The harness's Monitoring: it scrapes operator and agents as the shipped monitors say."""
    with monitoring(cluster, product, tmp_path) as running:
        yield running
