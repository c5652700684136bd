# SPDX-License-Identifier: Apache-2.0
"""The workload without cachewarm: cold by itself, warm from a directory that somebody gives it."""

from harness import pods
from harness.cluster import Cluster
from harness.kubectl import Kubectl
from harness.model_server import CONTAINER, ModelServer


def with_directory(server: ModelServer, path: str) -> dict:
    """The pod with a compile cache on the node's disk, given by hand."""
    pod = server.pod()
    (container,) = (c for c in pod["spec"]["containers"] if c["name"] == CONTAINER)
    container["env"].append({"name": "TORCHINDUCTOR_CACHE_DIR", "value": "/cache"})
    container["volumeMounts"].append({"name": "cache", "mountPath": "/cache"})
    disk = {"path": path, "type": "DirectoryOrCreate"}
    pod["spec"]["volumes"].append({"name": "cache", "hostPath": disk})
    return pod


def test_second_start_on_the_same_directory_is_warm(
    cluster: Cluster, kubectl: Kubectl
):
    path = f"/var/lib/cachewarm/{kubectl.namespace}"
    first = ModelServer(name="first", nodes=("node-a",))
    second = ModelServer(name="second", nodes=("node-a",))
    kubectl.apply(with_directory(first, path))
    cold = pods.start(kubectl, pods.wait_ready(kubectl, "first", 1, 180)[0])
    kubectl.apply(with_directory(second, path))
    warm = pods.start(kubectl, pods.wait_ready(kubectl, "second", 1, 120)[0])
    cluster.remove_in_node("node-a", path)
    assert cold.cold and cold.right
    assert warm.full_hit and warm.right


def test_start_without_a_directory_is_cold(kubectl: Kubectl):
    kubectl.apply(ModelServer(name="plain", nodes=("node-b",), run_as=1000).pod())
    start = pods.start(kubectl, pods.wait_ready(kubectl, "plain", 1, 180)[0])
    assert start.cold and start.right and start.dir.startswith("/tmp/")
