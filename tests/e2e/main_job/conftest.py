# SPDX-License-Identifier: Apache-2.0
"""One installation serves the whole folder: node-a and node-b are what they are, node-c plays
another GPU type by its facts file."""

import pytest
from harness.cluster import NODES, Cluster
from harness.pods import name, ready
from harness.product import H100, Product

FACTS = {"node-c": {"gpuType": H100}}


def _put_right(cluster: Cluster) -> None:
    """What a test that was cut short may have left behind."""
    cluster.verb("registry-up")
    cluster.verb("registry-throttle", "unlimited")
    for node in NODES:
        cluster.remove_in_node(node, "/etc/cachewarm-test/isa")


@pytest.fixture(scope="session")
def installation(cluster: Cluster) -> Product:
    _put_right(cluster)
    product = Product(cluster)
    product.install(facts=FACTS)
    return product


@pytest.fixture
def product(installation: Product, cluster: Cluster) -> Product:
    """The installation, whole at the start of every test."""
    _put_right(cluster)
    off = [node for node in cluster.kubectl().list("nodes") if not ready(node)]
    missing = set(NODES) - {name(node) for node in cluster.kubectl().list("nodes")}
    for node in {name(node) for node in off} | missing:
        cluster.verb("node-up", node)
    installation.declare_all(FACTS)
    installation.wait_ready()
    return installation
