# SPDX-License-Identifier: Apache-2.0
"""The gate: a pod waits while waiting brings the bundle, never longer than it was allowed to, and
never at all where its revision is warm."""

from datetime import datetime

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.compiler import BUNDLE_BYTES, CACHE, assert_cold, assert_hit, assert_warm, compiler
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, add_pod, until_released
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, released, wait_event

NODES = ("node-a", "node-b")
# A bundle of 54 kB takes a minute; what a publish needs of answers, a few seconds.
SLOW = "1000"


def server_of(name: str) -> Sleeper:
    return compiler(name, NODES, size=BUNDLE_BYTES)


def publish_slowly(kubectl: Kubectl, cluster: Cluster, server: Sleeper, hold: int) -> Warmup:
    """One pod of `server` has compiled, its bundle is published, and the nodes fetch it at SLOW."""
    gate = {"mode": "Hold", "maxHoldSeconds": hold}
    warmup = accept(kubectl, server, gate=gate, caches=[CACHE])
    cluster.verb("registry-throttle", SLOW)
    kubectl.scale("deployment", server.name, 1)
    pods.wait_ready(kubectl, server.name, 1, 180)
    warmup.wait_bundles(1)
    return warmup


def seconds_between(earlier: str, later: str) -> float:
    read = datetime.fromisoformat
    return (read(later) - read(earlier)).total_seconds()


def scheduled(pod: dict) -> str:
    conditions = pod["status"].get("conditions", [])
    return next(c["lastTransitionTime"] for c in conditions if c["type"] == "PodScheduled")


class TestWhileTheNodesFetch:
    """One Deployment, from its first pod to a warm revision."""

    SERVER = server_of("fetching")

    @pytest.fixture
    def warmup(self, shared: Kubectl, product: Product) -> Warmup:
        return Warmup(shared, self.SERVER.name)

    def test_pod_waits_for_the_fetch_of_its_node_and_hits(
        self, shared: Kubectl, warmup: Warmup, cluster: Cluster
    ):
        publish_slowly(shared, cluster, self.SERVER, hold=900)
        pod = add_pod(shared, self.SERVER.name)
        assert gated(pod) and injected(pod)
        note = "cachewarm.io/held-until"
        wait_for(
            "the pod says until when it is held",
            lambda: pods.annotation(shared.get("pod", pods.name(pod)), note),
            60,
            shared,
        )
        wait_event(shared, pods.name(pod), "PodHeld")
        assert gated(shared.get("pod", pods.name(pod)))
        cluster.verb("registry-throttle", "unlimited")
        free = until_released(shared, pod)
        assert released(free) == "ReleasedWarm"
        assert_hit(shared, pod)

    def test_warm_revision_is_not_gated(self, shared: Kubectl, warmup: Warmup):
        warmup.wait_warm()
        wait_for("the revision is warm", lambda: warmup.injection.get("warmRevisions"), 60, shared)
        pod = add_pod(shared, self.SERVER.name)
        assert injected(pod) and not gated(pod)
        assert_hit(shared, pod)
        assert released(shared.get("pod", pods.name(pod))) == ""

    def test_warm_revision_is_not_gated_without_an_operator(
        self, shared: Kubectl, warmup: Warmup, product: Product
    ):
        try:
            product.scale_operator(0)
            pod = add_pod(shared, self.SERVER.name)
            assert injected(pod) and not gated(pod)
            assert_warm(shared, pod)
        finally:
            product.scale_operator(2)


def test_new_leader_releases_a_held_pod(
    kubectl: Kubectl, cluster: Cluster, product: Product
):
    server = server_of("orphaned")
    publish_slowly(kubectl, cluster, server, hold=900)
    pod = add_pod(kubectl, server.name)
    assert gated(pod)
    before = product.lease_holder()
    product.kill_leader()
    cluster.verb("registry-throttle", "unlimited")
    free = until_released(kubectl, pod)
    assert released(free) == "ReleasedWarm"
    assert product.lease_holder() not in ("", before)
    assert_hit(kubectl, pod)


def test_pod_starts_cold_at_its_deadline_while_the_store_is_off(
    kubectl: Kubectl, cluster: Cluster, product: Product
):
    server = server_of("off")
    hold = 15
    publish_slowly(kubectl, cluster, server, hold=hold)
    cluster.verb("registry-down")
    pod = add_pod(kubectl, server.name)
    assert gated(pod)
    free = until_released(kubectl, pod, 60)
    assert released(free) == "ReleasedAtDeadline"
    assert_cold(kubectl, pod)
    ready = kubectl.get("pod", pods.name(pod))
    held = seconds_between(ready["metadata"]["creationTimestamp"], scheduled(ready))
    assert hold - 1 <= held
