# SPDX-License-Identifier: Apache-2.0
"""spec.harvest: a kernel that a running pod compiles reaches the other node, whose next pod has
it."""

from harness import pods
from harness.compiler import CACHE, late_compiler
from harness.kubectl import Kubectl
from harness.product import Product
from harness.steps import add_pod, replace, until_ready, warm_up
from harness.waiting import wait_for
from harness.warmup import wait_event

NODES = ("node-a", "node-b")  # of one GPU type and CPU class
NEVER = {"mode": "Never"}
LATE = 4  # seconds from the start to the late compile


def wait_log(kubectl: Kubectl, pod: dict, *expected: str) -> None:
    name = pods.name(pod)
    wait_for(
        f"{name} reports {expected}",
        lambda: kubectl.logs(name).split() == list(expected),
        60,
        kubectl,
    )


def test_kernel_compiled_after_ready_is_a_hit_on_the_other_node(
    kubectl: Kubectl, product: Product
):
    server = late_compiler("harvest", NODES, LATE)
    server.one_per_node = True
    warmup = warm_up(kubectl, server, gate=NEVER, caches=[CACHE], harvest=True)
    (before,) = warmup.bundles
    pod = until_ready(kubectl, replace(kubectl, pods.of(kubectl, server.name)[0]))
    (other,) = set(NODES) - {pods.node(pod)}
    wait_log(kubectl, pod, "hit", "miss")
    wait_for("the bundle is extended", lambda: warmup.bundles[0].get("extends"), 120, kubectl)
    (after,) = warmup.bundles
    assert after["extends"] == [before["digest"]], after
    assert after["files"] == before["files"] + 1, after
    assert after["publishedTime"] == before["publishedTime"], after
    assert warmup.condition("Warm")["status"] == "True", "nodes with the older bundle are warm"
    wait_event(kubectl, server.name, "Harvested")
    (harvest,) = warmup.status["harvests"]
    assert (harvest["reason"], harvest["node"]) == ("Harvested", pods.node(pod)), harvest
    wait_for(
        f"{other} has the larger bundle",
        lambda: after["digest"] in warmup.active_on(other),
        60,
        kubectl,
    )
    later = until_ready(kubectl, add_pod(kubectl, server.name))
    assert pods.node(later) == other
    wait_log(kubectl, later, "hit", "hit")
    assert {pods.name(each) for each in pods.of(kubectl, server.name)} == {
        pods.name(pod),
        pods.name(later),
    }, "no pod was replaced"
    assert len(warmup.status["harvests"][0]["harvestedSets"]) == 1, "nothing was harvested twice"
