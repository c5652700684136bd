# SPDX-License-Identifier: Apache-2.0
"""The test cluster itself: nodes that are apart, a registry, power cuts, a node that joins
later."""

import pytest
from harness import pods
from harness.cluster import NODES, THROTTLED_REGISTRY, Cluster
from harness.kubectl import Kubectl
from harness.waiting import wait_for

BUSYBOX = "localhost/busybox:1"


def shell_pod(namespace: str, name: str, node: str, script: str, image: str = BUSYBOX) -> dict:
    container = {
        "name": "c",
        "image": image,
        "command": ["sh", "-c", script + "; sleep 100000"],
        "volumeMounts": [{"name": "disk", "mountPath": "/var/lib/cachewarm"}],
    }
    # A policy of the product lets a pod mount only the directory of its own namespace.
    path = f"/var/lib/cachewarm/{namespace}"
    directory = {"path": path, "type": "DirectoryOrCreate"}
    spec = {
        "nodeName": node,
        "dnsPolicy": "Default",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "volumes": [{"name": "disk", "hostPath": directory}],
    }
    metadata = {"name": name, "labels": {"app": "shell"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_each_node_runs_pods_on_its_own_disk(kubectl: Kubectl):
    mark = kubectl.namespace
    kubectl.apply(*(shell_pod(mark, n, n, f"echo {n} >/var/lib/cachewarm/{mark}") for n in NODES))
    pods.wait_ready(kubectl, "shell", 3, 60)
    for node in NODES:
        assert kubectl.execute(node, "cat", f"/var/lib/cachewarm/{mark}").strip() == node
        kubectl.execute(node, "rm", f"/var/lib/cachewarm/{mark}")


def test_pods_reach_each_other_and_the_api_server_across_nodes(kubectl: Kubectl):
    kubectl.apply(shell_pod(kubectl.namespace, "left", "node-a", "true"))
    kubectl.apply(shell_pod(kubectl.namespace, "right", "node-b", "nc -ll -p 8080 -e echo hi"))
    pods.wait_ready(kubectl, "shell", 2, 60)
    address = kubectl.get("pod", "right")["status"]["podIP"]
    assert "hi" in kubectl.execute("left", "sh", "-c", f"echo | nc -w 3 {address} 8080")
    kubectl.execute("left", "sh", "-c", "echo | nc -w 3 $KUBERNETES_SERVICE_HOST 443")


def test_image_is_pulled_after_a_registry_restart(
    cluster: Cluster, kubectl: Kubectl
):
    archive = cluster.base_image("busybox")
    reference = cluster.push(archive, "test/busybox", kubectl.namespace)
    cluster.verb("registry-restart")
    kubectl.apply(shell_pod(kubectl.namespace, "pulled", "node-c", "true", image=reference))
    pods.wait_ready(kubectl, "shell", 1, 60)


def test_throttling_proxy_slows_and_frees_a_download(cluster: Cluster, kubectl: Kubectl):
    cluster.push(cluster.base_image("busybox"), "test/busybox", "throttle")
    layer = cluster.largest_layer("test/busybox", "throttle")
    address = f"http://{THROTTLED_REGISTRY}/v2/test/busybox/blobs/{layer['digest']}"
    command = ["curl", "-sf", "-m", "60", "-o", "/dev/null", "-w", "%{time_total}", address]
    try:
        cluster.verb("registry-throttle", str(layer["size"] // 4))
        slow = float(cluster.in_node("node-a", *command))
        cluster.verb("registry-throttle", "unlimited")
        quick = float(cluster.in_node("node-a", *command))
    finally:
        cluster.verb("registry-throttle", "unlimited")
    assert slow > 3 * quick


def test_power_cut_ends_every_process_and_keeps_the_disk(cluster: Cluster, kubectl: Kubectl):
    mark = f"/var/lib/cachewarm/{kubectl.namespace}"
    script = f"[ -e {mark} ] || echo once >{mark}"
    kubectl.apply(shell_pod(kubectl.namespace, "victim", "node-b", script))
    first = pods.wait_ready(kubectl, "shell", 1, 60)[0]
    cluster.verb("node-reboot", "node-b")
    again = wait_for(
        "the pod runs again",
        lambda: [p for p in pods.of(kubectl, "shell") if pods.ready(p) and pods.restarts(p) > 0],
        60,
        kubectl,
    )[0]
    assert again["metadata"]["uid"] == first["metadata"]["uid"]
    assert kubectl.execute("victim", "cat", mark).strip() == "once"
    kubectl.execute("victim", "rm", mark)


def test_fourth_node_joins_and_leaves_no_trace(cluster: Cluster, kubectl: Kubectl):
    try:
        cluster.verb("node-up", "node-d")
        kubectl.apply(shell_pod(kubectl.namespace, "late", "node-d", "true"))
        pods.wait_ready(kubectl, "shell", 1, 60)
    finally:
        cluster.verb("node-down", "node-d", "--purge")
    assert kubectl.get("node", "node-d") is None


def test_api_server_keeps_its_objects_over_a_restart(cluster: Cluster, kubectl: Kubectl):
    kubectl.run("create", "configmap", "kept", "--from-literal=a=b")
    cluster.verb("apiserver-restart")
    assert kubectl.get("configmap", "kept")["data"] == {"a": "b"}


def test_lost_node_becomes_not_ready(cluster: Cluster, kubectl: Kubectl):
    def ready() -> str:
        conditions = kubectl.get("node", "node-c")["status"]["conditions"]
        return next(c["status"] for c in conditions if c["type"] == "Ready")

    cluster.verb("node-down", "node-c")
    try:
        wait_for("node-c is not Ready", lambda: ready() != "True", 60, kubectl)
    finally:
        cluster.verb("node-up", "node-c")
    assert ready() == "True"


@pytest.mark.parametrize("name", ["node-z", "worker", "node-1"])
def test_unknown_node_name_is_refused(cluster: Cluster, name: str):
    with pytest.raises(AssertionError, match="expected node-a to node-i"):
        cluster.verb("node-up", name)


@pytest.mark.parametrize("program", ["kubebox", "containerd"])
def test_processes_of_a_node_are_restarted_and_its_pods_keep_running(
    cluster: Cluster, kubectl: Kubectl, program: str
):
    def running() -> set[str]:
        return set(cluster.in_node("node-b", "sh", "-c", f"pidof {program} || true").split())

    kubectl.apply(shell_pod(kubectl.namespace, "before", "node-b", "true"))
    pods.wait_ready(kubectl, "shell", 1, 60)
    ended = running()
    assert len(ended) == 1
    cluster.in_node("node-b", "kill", "-9", *ended)
    wait_for(f"another {program} on node-b", lambda: running() - ended, 30)
    kubectl.apply(shell_pod(kubectl.namespace, "after", "node-b", "true"))
    pods.wait_ready(kubectl, "shell", 2, 90)
    assert kubectl.get("pod", "before")["status"]["containerStatuses"][0]["restartCount"] == 0
