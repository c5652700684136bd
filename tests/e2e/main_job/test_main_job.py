# SPDX-License-Identifier: Apache-2.0
"""The main job: one pod per GPU type compiles, every other pod starts warm. The tests build on one
another: one Deployment, one pod per node."""

import re

import pytest
from harness import pods
from harness.cluster import NODES, Cluster
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import H100, Product
from harness.steps import accept, assert_cold, assert_hit, replace
from harness.waiting import wait_for
from harness.warmup import Warmup, events, start_note, wait_event

SERVER = ModelServer(name="llama", replicas=3, one_per_node=True)
START_REASONS = {"StartedWarm", "StartedCold", "CacheMissed"}  # one event for each start


@pytest.fixture
def warmup(shared: Kubectl, product: Product) -> Warmup:
    return Warmup(shared, SERVER.name)


def builder_pods(warmup: Warmup) -> dict[str, str]:
    return {builder["gpuType"]: builder["podName"] for builder in warmup.builders}


def test_one_pod_per_gpu_type_compiles_and_the_others_hit(
    shared: Kubectl, warmup: Warmup
):
    accept(shared, SERVER, gate={"mode": "Hold", "maxHoldSeconds": 600})
    shared.scale("deployment", SERVER.name, SERVER.replicas)
    running = pods.wait_ready(shared, SERVER.name, SERVER.replicas, 300)
    warmup.wait_warm()

    assert {pods.node(pod) for pod in running} == set(NODES)
    assert sorted(b["gpuType"] for b in warmup.bundles) == ["cpu", H100]
    builders = builder_pods(warmup)
    assert sorted(builders) == ["cpu", H100] and len(set(builders.values())) == 2
    for pod in running:
        if pods.name(pod) in builders.values():
            assert_cold(shared, pod)
        else:
            assert_hit(shared, pod)
    warmup.wait_counted({"builder": 2, "hit": 1})
    (follower,) = (pod for pod in running if pods.name(pod) not in builders.values())
    event = wait_event(shared, pods.name(follower), "StartedWarm")
    # On a busy machine the first hold may last longer than a cold start.
    balance = re.search(r"the engine compiled nothing; (saved|lost) \d+\.\d s ", event["note"])
    assert event["type"] == "Normal" and balance, event
    for name in builders.values():
        assert not START_REASONS & {each["reason"] for each in events(shared, name)}, name


@pytest.mark.parametrize("node", NODES)
def test_new_pod_hits_on_every_node(shared: Kubectl, warmup: Warmup, node: str):
    before = warmup.status
    (old,) = (pod for pod in pods.of(shared, SERVER.name) if pods.node(pod) == node)
    pod = replace(shared, old)
    assert_hit(shared, pod)
    assert pods.node(shared.get("pod", pods.name(pod))) == node
    wait_for(
        "the pod's annotation says hit",
        lambda: start_note(shared.get("pod", pods.name(pod))).get("result") == "hit",
        60,
        shared,
    )
    wait_event(shared, pods.name(pod), "StartedWarm")
    seen = [e for e in events(shared, pods.name(pod)) if e["reason"] in START_REASONS]
    assert len(seen) == 1, seen
    assert [b["digest"] for b in warmup.bundles] == [b["digest"] for b in before["bundles"]]
    assert warmup.builders == before["builders"]


def test_pods_hit_after_loss_of_the_builder_node_and_a_registry_restart(
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
    shared.scale("deployment", SERVER.name, 2)
    (old,) = (pod for pod in pods.of(shared, SERVER.name) if pods.node(pod) == other)
    shared.kill_pod(pods.name(old))

    def on(node: str) -> dict | None:
        found = [p for p in pods.of(shared, SERVER.name) if pods.node(p) == node]
        return found[0] if found and pods.ready(found[0]) else None

    left = wait_for(f"a pod on {other}", lambda: on(other), 180, shared)
    assert_hit(shared, left)

    # The node comes back with an empty disk and gets the bundle from the store.
    cluster.verb("node-up", gone)
    wait_for(
        f"{gone} has the bundle again",
        lambda: bundle["digest"] in warmup.active_on(gone),
        240,
        shared,
    )
    shared.scale("deployment", SERVER.name, 3)
    back = wait_for(f"a pod on {gone}", lambda: on(gone), 180, shared)
    assert_hit(shared, back)
    assert {b["digest"] for b in warmup.bundles if b["gpuType"] == "cpu"} == {bundle["digest"]}
    assert bundle["builderPod"] in builder_pods(warmup).values()
