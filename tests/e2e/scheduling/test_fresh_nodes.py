# SPDX-License-Identifier: Apache-2.0
"""Nodes that join: kept free by the startup taint until they are warm and never longer than a
minute; and fetch slots."""

import json
from collections.abc import Iterator
from datetime import datetime

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.compiler import BUNDLE_BYTES, CACHE, assert_warm, compiler
from harness.definitions import OPERATOR, answer, impersonating
from harness.kubectl import Kubectl
from harness.product import Product, configuration
from harness.sleeper import Sleeper
from harness.steps import accept, add_pod, warm_up
from harness.waiting import wait_for
from harness.warmup import Warmup, gated

TAINT = "cachewarm.io/warming"
FOREIGN = "example.com/no-agent"  # no agent tolerates it
FRESH = "node-d"
ABANDONED = "node-e"
# A bundle of 54 kB takes half a minute.
SLOW = "2000"


def one_per_node(name: str, *nodes: str) -> Sleeper:
    server = compiler(name, nodes, size=BUNDLE_BYTES)
    server.one_per_node = True
    return server


@pytest.fixture(scope="module")
def fetch_slots(installation: Product, cluster: Cluster) -> Iterator[Product]:
    """One node fetches at a time. Two have joined, of which one never gets an agent."""
    installation.install(configuration(fetch={"nodesMax": 1}))
    yield installation
    for node in (FRESH, ABANDONED):
        cluster.verb("node-down", node, "--purge")
    installation.install()


def node(kubectl: Kubectl, name: str) -> dict:
    return kubectl.get("node", name) or {}


def taints(kubectl: Kubectl, name: str) -> set[str]:
    return {taint["key"] for taint in node(kubectl, name).get("spec", {}).get("taints", [])}


def seconds_since_ready(kubectl: Kubectl, name: str) -> float:
    conditions = node(kubectl, name)["status"]["conditions"]
    (ready,) = [each for each in conditions if each["type"] == "Ready"]
    since = datetime.fromisoformat(ready["lastTransitionTime"])
    return (datetime.now(since.tzinfo) - since).total_seconds()


class TestJoiningNode:
    SERVER = one_per_node("joined", "node-a", FRESH)

    def test_warm_node_loses_the_taint_and_its_first_pod_hits(
        self, shared: Kubectl, fetch_slots: Product, product: Product, cluster: Cluster
    ):
        warmup = warm_up(shared, self.SERVER, caches=[CACHE])
        kind = f"{TAINT}:NoSchedule"
        cluster.verb("node-up", ABANDONED, "--taint", kind, "--taint", f"{FOREIGN}:NoSchedule")
        cluster.verb("node-up", FRESH, "--taint", kind)
        wait_for("the taint is gone", lambda: TAINT not in taints(shared, FRESH), 60, shared)
        print(f"{FRESH}: free {seconds_since_ready(shared, FRESH):.1f} s after it was Ready")
        assert warmup.active_on(FRESH) == {bundle["digest"] for bundle in warmup.bundles}
        removed = 'cachewarm_startup_taints_removed_total{reason="Warm"} 1'
        assert removed in fetch_slots.metrics("operator")
        pod = add_pod(shared, self.SERVER.name)
        assert_warm(shared, pod)
        assert pods.node(shared.get("pod", pods.name(pod))) == FRESH

    def test_operator_cannot_change_other_node_fields(
        self, shared: Kubectl, fetch_slots: Product
    ):
        operator = impersonating(shared, OPERATOR)

        def refused(patch: object, *flags: str) -> str:
            style = "json" if isinstance(patch, list) else "merge"
            words = ("patch", "node", FRESH, f"--type={style}", "--dry-run=server", *flags)
            return answer(operator, *words, "-p", json.dumps(patch))

        other = "only its own startup taint"
        assert other in refused({"metadata": {"labels": {"x": "y"}}})
        assert other in refused({"spec": {"unschedulable": True}})
        assert other in refused({"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})
        capacity = [{"op": "add", "path": "/status/capacity/example.com~1x", "value": "1"}]
        assert "forbidden" in refused(capacity, "--subresource=status").lower()


class TestFetchSlots:
    SERVER = one_per_node("turns", "node-a", "node-b", FRESH)

    def fetching(self, kubectl: Kubectl, uid: str) -> set[str]:
        """Nodes that were requested to fetch and have not answered."""
        out = set()
        # One list: between two reads a node may answer and the next get its request.
        for cache in kubectl.list("nodecaches"):
            wanted = cache.get("spec", {}).get("warmups", [])
            reported = cache.get("status", {}).get("warmups", [])
            digests = {b["digest"] for w in wanted if w["uid"] == uid for b in w.get("bundles", [])}
            answered = {
                b["digest"]
                for w in reported
                if w["uid"] == uid
                for b in w.get("bundles", [])
                if b.get("state") in ("Active", "Failed")
            }
            if digests - answered:
                out.add(cache["metadata"]["name"])
        return out

    def test_nodes_fetch_one_by_one(
        self, shared: Kubectl, fetch_slots: Product, product: Product, cluster: Cluster
    ):
        gate = {"mode": "Hold", "maxHoldSeconds": 600}
        warmup = accept(shared, self.SERVER, gate=gate, caches=[CACHE])
        uid = warmup.uid
        shared.run("cordon", FRESH)
        shared.scale("deployment", self.SERVER.name, 1)
        wait_for("a builder is elected", lambda: warmup.builders, 120, shared)
        # From here on a pod can go to the fresh node only.
        shared.run("uncordon", FRESH)
        shared.run("cordon", "node-a", "node-b")
        try:
            cluster.verb("registry-throttle", SLOW)
            held = add_pod(shared, self.SERVER.name)
            assert gated(held)
            warmup.wait_bundles(1)
            first = wait_for("a node fetches", lambda: self.fetching(shared, uid), 30, shared)
            assert len(first) == 1
            waiting = wait_for(
                "status shows the queue",
                lambda: warmup.bundles[0].get("nodesWaiting") == 2 and warmup.bundles[0],
                30,
                shared,
            )
            assert "wait for a fetch slot" in waiting["message"]
        finally:
            shared.run("uncordon", "node-a", "node-b")
        cluster.verb("registry-throttle", "unlimited")
        self.watch_fetches(shared, warmup, uid)
        assert_warm(shared, held)

    def watch_fetches(self, kubectl: Kubectl, warmup: Warmup, uid: str) -> None:
        def warm() -> bool:
            assert len(self.fetching(kubectl, uid)) <= 1
            return warmup.condition("Warm").get("status") == "True"

        wait_for("every node is warm", warm, 120, kubectl)
        assert not warmup.bundles[0].get("nodesWaiting")


class TestNodeWithoutAgent:
    def test_node_without_agent_loses_only_the_startup_taint_after_a_minute(
        self, shared: Kubectl, fetch_slots: Product, cluster: Cluster
    ):
        accept(shared, Sleeper(name="abandoned", nodes=("node-a", ABANDONED)))
        kind = f"{TAINT}:NoSchedule"
        cluster.verb("node-up", ABANDONED, "--taint", kind, "--taint", f"{FOREIGN}:NoSchedule")
        wait_for("the taint is gone", lambda: TAINT not in taints(shared, ABANDONED), 90, shared)
        assert seconds_since_ready(shared, ABANDONED) >= 59
        assert taints(shared, ABANDONED) == {FOREIGN}
        removed = fetch_slots.metrics("operator")
        assert 'cachewarm_startup_taints_removed_total{reason="DeadlineExceeded"} 1' in removed
