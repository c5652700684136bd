# SPDX-License-Identifier: Apache-2.0
"""Rolling updates: the pods of either revision start warm, and what changes no compiled code
builds nothing. The tests build on one another."""

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.compiler import CACHE, IMAGE, assert_warm, compiler
from harness.kubectl import Kubectl
from harness.product import Product
from harness.steps import warm_up
from harness.waiting import wait_for
from harness.warmup import Warmup

SERVER = compiler("rolling", ("node-a", "node-b"))
SERVER.strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
CONTAINER = "server"
IMAGES = {1: IMAGE, 2: "localhost/busybox:next"}


@pytest.fixture
def warmup(shared: Kubectl, product: Product) -> Warmup:
    return Warmup(shared, SERVER.name)


def image(pod: dict) -> str:
    return next(c["image"] for c in pod["spec"]["containers"] if c["name"] == CONTAINER)


def roll(kubectl: Kubectl, *words: str) -> None:
    kubectl.run(*words)
    target = f"deployment/{SERVER.name}"
    kubectl.run("rollout", "status", target, "--timeout=600s", seconds=620)


def settled(kubectl: Kubectl, count: int = 2) -> list[dict]:
    """The pods once the rollout has taken the old ones away."""
    return pods.wait_ready(kubectl, SERVER.name, count, 120)


def restart_container(kubectl: Kubectl, cluster: Cluster, pod: dict) -> dict:
    cluster.kill_in_pod(pod)

    def again() -> dict | None:
        now = kubectl.get("pod", pods.name(pod))
        return now if pods.restarts(now) > pods.restarts(pod) and pods.ready(now) else None

    return wait_for(f"{pods.name(pod)} runs again", again, 180, kubectl)


def test_pods_of_both_revisions_hit_during_a_rollout(
    shared: Kubectl, product: Product, cluster: Cluster
):
    gate = {"mode": "Hold", "maxHoldSeconds": 600}
    warmup = warm_up(shared, SERVER, gate=gate, caches=[CACHE])
    shared.scale("deployment", SERVER.name, 2)
    settled(shared)
    cluster.another_tag(IMAGE, "next")
    shared.run("set", "image", f"deployment/{SERVER.name}", f"{CONTAINER}={IMAGES[2]}")

    def first_of_the_new() -> dict | None:
        return next((p for p in pods.of(shared, SERVER.name) if image(p) == IMAGES[2]), None)

    first = wait_for("a pod of the new revision", first_of_the_new, 60, shared)
    shared.run("rollout", "pause", f"deployment/{SERVER.name}")
    assert_warm(shared, first)
    old = [pod for pod in pods.of(shared, SERVER.name) if image(pod) == IMAGES[1]]
    assert old, "the rollout was paused too late"
    assert_warm(shared, restart_container(shared, cluster, old[0]))
    roll(shared, "rollout", "resume", f"deployment/{SERVER.name}")
    for pod in settled(shared):
        assert image(pod) == IMAGES[2]
        assert_warm(shared, pod)
    # The new image has a key of its own, and a bundle that started from the last one.
    warmup.wait_bundles(2)
    warmup.wait_warm()
    assert sorted(bundle["image"] for bundle in warmup.bundles) == sorted(IMAGES.values())


def test_change_of_args_and_env_triggers_no_build(shared: Kubectl, warmup: Warmup):
    before = warmup.status
    template = {
        "spec": {"containers": [{"name": CONTAINER, "args": ["--quiet"], "env": [
            {"name": "MODEL_NOTE", "value": "changed"}
        ]}]}
    }  # fmt: skip
    patch = {"spec": {"template": template}}
    shared.patch("deployment", SERVER.name, patch, "--type=strategic")
    roll(shared, "get", "deployment", SERVER.name)
    for pod in settled(shared):
        assert_warm(shared, pod)
    assert warmup.builders == before["builders"]
    digests = [bundle["digest"] for bundle in warmup.bundles]
    assert digests == [bundle["digest"] for bundle in before["bundles"]]


def test_rollback_hits_at_once(shared: Kubectl, warmup: Warmup):
    before = warmup.status
    roll(shared, "rollout", "undo", f"deployment/{SERVER.name}", "--to-revision=1")
    for pod in settled(shared):
        assert image(pod) == IMAGES[1]
        assert_warm(shared, pod)
    assert warmup.builders == before["builders"]
