# SPDX-License-Identifier: Apache-2.0
"""The main job: one pod per GPU type compiles, every other pod starts warm. The tests build on one
another: one Deployment, one pod per node."""

import pytest
from harness import pods
from harness.cluster import NODES, Cluster
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import H100, Product
from harness.waiting import wait_for
from harness.warmup import DIRECTORY, Warmup, start_note, wish_for

SERVER = ModelServer(name="llama", replicas=3, one_per_node=True)


@pytest.fixture
def warmup(shared: Kubectl, product: Product) -> Warmup:
    return Warmup(shared, SERVER.name)


def builder_pods(warmup: Warmup) -> dict[str, str]:
    return {builder["gpuType"]: builder["podName"] for builder in warmup.builders}


def assert_warm(kubectl: Kubectl, pod: dict) -> None:
    start = pods.start(kubectl, pod)
    assert start.full_hit and start.right, f"{pods.name(pod)} on {pods.node(pod)}: {start}"
    assert start.dir.startswith(DIRECTORY), start
    assert pods.restarts(pod) == 0


def replace(kubectl: Kubectl, pod: dict) -> dict:
    """Deletes a pod; returns the one that the Deployment made instead, Ready."""
    known = {pods.name(each) for each in pods.of(kubectl, SERVER.name)}
    kubectl.kill_pod(pods.name(pod))

    def successor() -> dict | None:
        made = [p for p in pods.of(kubectl, SERVER.name) if pods.name(p) not in known]
        return made[0] if made and pods.ready(made[0]) else None

    return wait_for(f"a pod instead of {pods.name(pod)} is Ready", successor, 120, kubectl)


def test_exactly_one_pod_per_gpu_type_compiles_and_every_other_pod_starts_warm(
    shared: Kubectl, warmup: Warmup
):
    deployment = SERVER.deployment()
    deployment["spec"]["replicas"] = 0
    shared.apply(deployment)
    wish = wish_for(deployment, gate={"maxHoldSeconds": 600}, compile={"builder": "FirstPod"})
    shared.apply(wish)
    warmup.wait_injecting()
    shared.scale("deployment", SERVER.name, SERVER.replicas)
    running = pods.wait_ready(shared, SERVER.name, SERVER.replicas, 300)
    warmup.wait_warm()

    assert {pods.node(pod) for pod in running} == set(NODES)
    assert sorted(b["gpuType"] for b in warmup.bundles) == ["cpu", H100]
    builders = builder_pods(warmup)
    assert sorted(builders) == ["cpu", H100] and len(set(builders.values())) == 2
    for pod in running:
        if pods.name(pod) in builders.values():
            assert pods.start(shared, pod).cold
        else:
            assert_warm(shared, pod)
    warmup.wait_counted({"builder": 2, "hit": 1})


@pytest.mark.parametrize("node", NODES)
def test_a_new_pod_on_any_node_is_a_full_hit(shared: Kubectl, warmup: Warmup, node: str):
    before = warmup.status
    (old,) = (pod for pod in pods.of(shared, SERVER.name) if pods.node(pod) == node)
    pod = replace(shared, old)
    assert pods.node(pod) == node
    assert_warm(shared, pod)
    wait_for(
        "the pod's annotation says hit",
        lambda: start_note(shared.get("pod", pods.name(pod))).get("result") == "hit",
        60,
        shared,
    )
    assert [b["digest"] for b in warmup.bundles] == [b["digest"] for b in before["bundles"]]
    assert warmup.builders == before["builders"]


def test_pods_hit_after_the_builders_node_is_gone_and_the_registry_was_restarted(
    shared: Kubectl, warmup: Warmup, cluster: Cluster
):
    (bundle,) = (b for b in warmup.bundles if b["gpuType"] == "cpu")
    gone = bundle["builderNode"]
    (other,) = {"node-a", "node-b"} - {gone}
    cluster.verb("registry-restart")
    cluster.verb("node-down", gone, "--purge")
    for pod in pods.of(shared, SERVER.name):
        if pods.node(pod) == gone:
            shared.kill_pod(pods.name(pod))
    (old,) = (pod for pod in pods.of(shared, SERVER.name) if pods.node(pod) == other)
    shared.kill_pod(pods.name(old))

    def on_the_other_node() -> dict | None:
        found = [p for p in pods.of(shared, SERVER.name) if pods.node(p) == other]
        return found[0] if found and pods.ready(found[0]) else None

    assert_warm(shared, wait_for("a pod on the node left", on_the_other_node, 180, shared))

    # The node comes back with an empty disk and gets the bundle from the store.
    cluster.verb("node-up", gone)
    running = pods.wait_ready(shared, SERVER.name, SERVER.replicas, 240)
    (back,) = (pod for pod in running if pods.node(pod) == gone)
    assert_warm(shared, back)
    assert {b["digest"] for b in warmup.bundles if b["gpuType"] == "cpu"} == {bundle["digest"]}
    assert bundle["builderPod"] in builder_pods(warmup).values()
