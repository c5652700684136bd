# SPDX-License-Identifier: Apache-2.0
"""The integrations, beside the product in one cluster. Each is installed by the first test that
requests it and stays to the end."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.cluster import Cluster
from harness.gates import small_pod
from harness.integration import Integration

KUEUE = Integration("kueue", {"integrations": {"frameworks": ["batch/job", "pod", "deployment"]}})
LEADER_WORKER_SET = Integration("lws")
JOB_SET = Integration("jobset")


@contextmanager
def _beside(cluster: Cluster, integration: Integration, probe: dict) -> Iterator[Integration]:
    admin = cluster.kubectl()
    try:
        integration.install(admin)
        integration.wait_serving(admin, probe)
        yield integration
    finally:
        integration.remove(admin)


@pytest.fixture(scope="session")
def kueue(installation, cluster: Cluster) -> Iterator[Integration]:
    with _beside(cluster, KUEUE, small_pod("probe")) as integration:
        yield integration


@pytest.fixture(scope="session")
def leader_worker_set(installation, cluster: Cluster) -> Iterator[Integration]:
    probe = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "probe"},
        "spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": small_pod("probe")["spec"]}}},
    }
    with _beside(cluster, LEADER_WORKER_SET, probe) as integration:
        yield integration


@pytest.fixture(scope="session")
def job_set(installation, cluster: Cluster) -> Iterator[Integration]:
    pod = {"spec": {**small_pod("probe")["spec"], "restartPolicy": "Never"}}
    probe = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "probe"},
        "spec": {"replicatedJobs": [{"name": "probe", "template": {"spec": {"template": pod}}}]},
    }
    with _beside(cluster, JOB_SET, probe) as integration:
        yield integration
