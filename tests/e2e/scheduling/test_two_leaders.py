# SPDX-License-Identifier: Apache-2.0
"""A leader that slept past its Lease believes for a moment that it still leads. It decides from
what it knew, while another one leads: none of it may reach the API server."""

from harness import pods
from harness.cluster import Cluster
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import add_pod, until_released
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, released, warmup_for
from harness.writes import at_rest, last_writes

NODES = ("node-a", "node-b")
CACHE = {"name": "mine", "env": "MY_CACHE", "path": "mine"}
# Longer than until a pod is held, and not much longer than the Lease.
SETTLE_SECONDS = 15
COMPILES = """
[ -f "$MY_CACHE/kernel" ] || echo compiled > "$MY_CACHE/kernel"
touch /tmp/ready
exec sleep 3600
"""


def server(name: str) -> Sleeper:
    ready = {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1}
    container = {"readinessProbe": ready}
    return Sleeper(name=name, replicas=0, nodes=NODES, script=COMPILES, container=container)


def bring(kubectl: Kubectl, name: str, **compile_spec: object) -> Warmup:
    deployment = server(name).deployment()
    desired = warmup_for(
        deployment,
        gate={"mode": "Hold", "maxHoldSeconds": 300},
        caches=[CACHE],
        compile=compile_spec,
    )
    kubectl.apply(deployment, desired)
    return Warmup(kubectl, name)


def versions(kubectl: Kubectl) -> dict[str, str]:
    """Every object that the operator may write here, and its version."""
    return {
        f"{kind}/{pods.name(each)}": each["metadata"]["resourceVersion"]
        for kind in ("pods", "jobs", "deployments")
        for each in kubectl.list(kind)
    }


def test_leader_paused_past_its_lease_writes_nothing(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    waiting = bring(kubectl, "waiting", builder="FirstPod", settleSeconds=SETTLE_SECONDS)
    waiting.wait_injecting()
    kubectl.scale("deployment", "waiting", 1)
    pods.wait_ready(kubectl, "waiting", 1, 60)
    held = add_pod(kubectl, "waiting")
    assert gated(held)

    before = product.lease_holder()
    (sleeper,) = (p for p in product.pods("operator") if pods.name(p) == product.leader())
    asleep = pods.restarts(sleeper)
    cluster.signal_pod(sleeper, "STOP")
    try:
        # The one asleep would release the one and build the other, as soon as it hears of them.
        building = bring(kubectl, "building", builder="Job")
        wait_for(
            "another leads",
            lambda: product.lease_holder() not in ("", before),
            40,
            product.kubectl,
        )
        assert released(until_released(kubectl, held, 30)) == "ReleasedWarm"
        building.wait_warm(60)
        wait_for("its Job is gone", lambda: not building.jobs(), 30, kubectl)
        still = wait_for("all is written", lambda: at_rest(kubectl, waiting), 30, kubectl)
        seen = versions(kubectl)
        assert [b["attempt"] for w in (waiting, building) for b in w.builders] == [1, 1]
        now = product.kubectl.get("pod", pods.name(sleeper))
        assert pods.restarts(now) == asleep, "it was not asleep any more"
    finally:
        cluster.signal_pod(sleeper, "CONT")

    wait_for(
        "it has ended",
        lambda: pods.restarts(product.kubectl.get("pod", pods.name(sleeper))) > asleep,
        60,
        product.kubectl,
    )
    log = product.kubectl.logs(pods.name(sleeper), "--previous")
    assert "leadership lost" in log
    assert last_writes(kubectl, waiting) == still and versions(kubectl) == seen
    product.wait_ready()
    assert product.lease_holder() not in ("", before)
    assert injected(add_pod(kubectl, "building"))
    pods.wait_ready(kubectl, "building", 1, 60)
