# SPDX-License-Identifier: Apache-2.0
"""Groups of the real LeaderWorkerSet: every pod of a group has the cache, and they wait and start
together."""

import pytest

from harness import pods
from harness.compiler import CACHE, assert_hit, compiler
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, released, warmup_for

pytestmark = pytest.mark.usefixtures("leader_worker_set")

TWINS = ("node-a", "node-b")  # of one GPU type and CPU class, so that all ranks have one key
NAME = "leaderworkerset.sigs.k8s.io/name"
GROUP = "leaderworkerset.sigs.k8s.io/group-index"
REVISION = "leaderworkerset.sigs.k8s.io/template-revision-hash"
SIZE = 2


def leader_worker_set(server: Sleeper, replicas: int) -> dict:
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": server.name},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": SIZE, "workerTemplate": server.template()},
        },
    }


def scale(kubectl: Kubectl, name: str, replicas: int) -> None:
    kubectl.patch("leaderworkerset", name, {"spec": {"replicas": replicas}})


def group(kubectl: Kubectl, name: str, index: int) -> list[dict]:
    found = kubectl.list("pods", f"{NAME}={name},{GROUP}={index}")
    return [pod for pod in found if not pods.deleted(pod)]


def whole_group(kubectl: Kubectl, name: str, index: int) -> list[dict]:
    """Its pods as they are right after the last of them was made."""

    def whole() -> list[dict]:
        members = group(kubectl, name, index)
        return members if len(members) == SIZE else []

    return wait_for(f"group {index} of {name}", whole, 60, kubectl)


def wait_available(kubectl: Kubectl, name: str, replicas: int) -> None:
    """By the words of its own controller."""

    def available() -> bool:
        status = (kubectl.get("leaderworkerset", name) or {}).get("status", {})
        return status.get("readyReplicas", 0) == replicas

    wait_for(f"{replicas} groups of {name} are ready", available, 240, kubectl)


def test_second_group_of_an_annotated_set_starts_warm(kubectl: Kubectl, product: Product):
    server = compiler("ranks", TWINS)
    wanted = leader_worker_set(server, 0)
    wanted["metadata"]["annotations"] = {
        "cachewarm.io/warm": "true",
        "cachewarm.io/settle-seconds": "2",
        "cachewarm.io/builder": "FirstPod",
    }
    kubectl.apply(wanted)
    warmup = Warmup(kubectl, server.name)
    wait_for("its warmup is made", warmup.read, 60, kubectl)
    kubectl.patch("cachewarmup", server.name, {"spec": {"caches": [CACHE]}})
    warmup.wait_injecting()

    scale(kubectl, server.name, 1)
    assert all(injected(pod) for pod in whole_group(kubectl, server.name, 0))
    wait_available(kubectl, server.name, 1)
    (bundle,) = warmup.wait_bundles(1)
    assert bundle["files"] == SIZE, "the kernel of each rank"
    (builder,) = warmup.builders
    assert set(builder["ranks"]) == {
        pod["metadata"]["uid"] for pod in group(kubectl, server.name, 0)
    }
    warmup.wait_warm()

    scale(kubectl, server.name, 2)
    for pod in whole_group(kubectl, server.name, 1):
        assert injected(pod) and not gated(pod), "every node is warm"
        assert_hit(kubectl, pod)
    wait_available(kubectl, server.name, 2)
    members = [pod for index in (0, 1) for pod in group(kubectl, server.name, index)]
    revisions = {pod["metadata"]["labels"][REVISION] for pod in members}
    wait_for(
        "what is warm is the one revision of all groups",
        lambda: len(revisions) == 1 and set(warmup.injection["warmRevisions"]) == revisions,
        60,
        kubectl,
    )


def test_cold_group_is_held_and_released_together(kubectl: Kubectl, product: Product):
    server = compiler("held", TWINS)
    wanted = leader_worker_set(server, 0)
    spec = {"gate": {"mode": "Hold", "maxHoldSeconds": 600}, "caches": [CACHE]}
    kubectl.apply(wanted, warmup_for(wanted, compile={"builder": "FirstPod"}, **spec))
    warmup = Warmup(kubectl, server.name)
    warmup.wait_injecting()
    wait_for("new pods are held", lambda: warmup.injection.get("gate"), 30, kubectl)

    scale(kubectl, server.name, 1)
    first = whole_group(kubectl, server.name, 0)
    scale(kubectl, server.name, 2)
    second = whole_group(kubectl, server.name, 1)
    assert all(injected(pod) for pod in first + second)
    assert all(gated(pod) for pod in second), "nothing is there yet to start warm from"

    def free(index: int) -> list[dict]:
        members = group(kubectl, server.name, index)
        return members if not any(gated(pod) for pod in members) else []

    builders = wait_for("the first group is released", lambda: free(0), 60, kubectl)
    assert "ReleasedForBuild" in {released(pod) for pod in builders}
    assert {released(pod) for pod in builders} <= {"ReleasedForBuild", "ReleasedWithGroup", ""}
    warmup.wait_bundles(1)
    warm = wait_for("the second group is released", lambda: free(1), 120, kubectl)
    assert {released(pod) for pod in warm} <= {"ReleasedWarm", "ReleasedWithGroup"}
    for pod in warm:
        assert_hit(kubectl, pod)
    wait_available(kubectl, server.name, 2)
