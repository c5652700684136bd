# SPDX-License-Identifier: Apache-2.0
"""Two warmups of the same pods: the older one acts, the newer one says that it does not."""

from datetime import UTC, datetime

from harness import pods
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, make_warmup, warmup_for

OWNER = "cachewarm.io/warmup"


def test_newer_warmup_takes_over_when_the_older_is_deleted(kubectl: Kubectl, product: Product):
    server = Sleeper(name="wanted-twice", replicas=0)
    deployment = server.deployment()
    of_workload = warmup_for(deployment)
    kubectl.apply(deployment, of_workload)
    older = Warmup(kubectl, server.name)
    older.wait_injecting()
    older.wait_admission(server.pod("probe"))

    # Times of creation have whole seconds.
    born = datetime.fromisoformat(older.read()["metadata"]["creationTimestamp"])
    wait_for("another second", lambda: (datetime.now(UTC) - born).seconds >= 1, 5, kubectl)
    kubectl.apply(make_warmup("newer", **of_workload["spec"]))
    newer = Warmup(kubectl, "newer")
    said = newer.wait_condition("Ready", "False", "OverlapsAnotherWarmup")
    assert server.name in said["message"], said["message"]

    def taken_by() -> str:
        made = kubectl.create(server.pod("probe"), "--dry-run=server")
        return made["metadata"].get("annotations", {}).get(OWNER, "") if injected(made) else ""

    assert taken_by() == server.name
    kubectl.delete("cachewarmup", server.name)
    newer.wait_injecting()
    wait_for("its pods get the cache", lambda: taken_by() == "newer", 30, kubectl)


def test_newer_warmup_does_not_release_pods_of_the_older(kubectl: Kubectl, product: Product):
    never = {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 5}
    server = Sleeper(name="held-once", nodes=("node-a",), container={"readinessProbe": never})
    older = accept(kubectl, server, gate={"mode": "Hold", "maxHoldSeconds": 900})
    older.wait_admission(server.pod("probe"))
    kubectl.scale("deployment", server.name, 2)

    def held() -> list[str]:
        return [pods.name(pod) for pod in pods.of(kubectl, server.name) if gated(pod)]

    wait_for("one builds, one waits", lambda: older.builders and len(held()) == 1, 60, kubectl)
    waits = held()
    kubectl.apply(make_warmup("holds-too", **older.read()["spec"]))
    newer = Warmup(kubectl, "holds-too")
    newer.wait_condition("Ready", "False", "OverlapsAnotherWarmup")

    def has_looked_again(seconds: int) -> None:
        kubectl.patch("cachewarmup", newer.name, {"spec": {"gate": {"maxHoldSeconds": seconds}}})
        generation = newer.read()["metadata"]["generation"]

        def looked_at() -> bool:
            return newer.condition("Ready")["observedGeneration"] == generation

        wait_for(f"generation {generation} is looked at", looked_at, 60, kubectl)

    # The status of a generation is written before its actions, the next generation after both.
    has_looked_again(100)
    has_looked_again(200)
    assert held() == waits
