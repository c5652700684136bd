# SPDX-License-Identifier: Apache-2.0
"""Nothing in this folder needs the programs; test_round_trip.py lets the operator rest."""

import pytest

from harness import definitions
from harness.cluster import Cluster
from harness.kubectl import Kubectl


@pytest.fixture(scope="session", autouse=True)
def installed(cluster: Cluster) -> dict:
    """Objects of install.yaml by (kind, name): definitions, rights and policies are in force."""
    definitions.apply(cluster.kubectl())
    return definitions.objects()


@pytest.fixture(scope="session")
def admin(cluster: Cluster) -> Kubectl:
    """For what leaves nothing behind: dry runs and looks."""
    return cluster.kubectl()


@pytest.fixture
def operator(kubectl: Kubectl) -> Kubectl:
    """kubectl with the operator's identity, in the test's namespace."""
    return definitions.impersonating(kubectl, definitions.OPERATOR)
