# SPDX-License-Identifier: Apache-2.0
"""Two warmups of the same pods: the older one acts, the newer one says that it does not."""

from datetime import UTC, datetime

from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.waiting import wait_for
from harness.warmup import Warmup, injected, wish, wish_for

OWNER = "cachewarm.io/warmup"


def test_the_newer_of_two_takes_over_when_the_older_is_gone(kubectl: Kubectl, product: Product):
    server = Sleeper(name="wanted-twice", replicas=0)
    deployment = server.deployment()
    of_workload = wish_for(deployment)
    kubectl.apply(deployment, of_workload)
    older = Warmup(kubectl, server.name)
    older.wait_injecting()
    older.wait_admission(server.pod("probe"))

    # Times of creation have whole seconds.
    born = datetime.fromisoformat(older.read()["metadata"]["creationTimestamp"])
    wait_for("another second", lambda: (datetime.now(UTC) - born).seconds >= 1, 5, kubectl)
    kubectl.apply(wish("newer", **of_workload["spec"]))
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
