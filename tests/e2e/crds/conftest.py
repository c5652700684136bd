# SPDX-License-Identifier: Apache-2.0
"""The tests of this folder need no operator. It is scaled down, because it would overwrite the
objects that the tests write with its identity."""

import pytest

from harness import definitions
from harness.cluster import Cluster
from harness.definitions import SYSTEM
from harness.kubectl import Kubectl
from harness.waiting import wait_for

OPERATOR_PODS = "app.kubernetes.io/name=cachewarm,app.kubernetes.io/component=operator"


@pytest.fixture(scope="session", autouse=True)
def installed(cluster: Cluster) -> dict:
    """Objects of install.yaml by (kind, name): definitions, rights and policies are in force."""
    definitions.apply(cluster.kubectl())
    return definitions.objects()


@pytest.fixture(scope="package", autouse=True)
def operator_at_rest(cluster: Cluster, installed):
    system = cluster.kubectl().within(SYSTEM)
    deployment = system.get("deployment", "cachewarm-operator")
    replicas = deployment["spec"]["replicas"] if deployment else 0
    if replicas:
        system.scale("deployment", "cachewarm-operator", 0)
        wait_for("the operator has stopped", lambda: not system.list("pods", OPERATOR_PODS), 60)
    yield
    if replicas:
        system.scale("deployment", "cachewarm-operator", replicas)


@pytest.fixture(scope="session")
def admin(cluster: Cluster) -> Kubectl:
    """For dry runs and reads, which leave no objects behind."""
    return cluster.kubectl()


@pytest.fixture
def operator(kubectl: Kubectl) -> Kubectl:
    """kubectl with the operator's identity, in the test's namespace."""
    return definitions.impersonating(kubectl, definitions.OPERATOR)
