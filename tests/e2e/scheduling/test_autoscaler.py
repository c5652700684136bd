# SPDX-License-Identifier: Apache-2.0
"""An autoscaler is never starved: it does not look at pods that are held, so a pod that no node has
room for, or that no node fits, is released at once."""

from harness import pods
from harness.autoscaler import Autoscaler
from harness.cluster import Cluster
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, released

FRESH = "node-e"
PATIENT = {"mode": "Hold", "maxHoldSeconds": 900}


def accepted(kubectl: Kubectl, server: Sleeper) -> Warmup:
    warmup = accept(kubectl, server, gate=PATIENT)
    warmup.wait_admission(server.pod("probe"))
    return warmup


def test_device_is_added_for_a_pod_that_fits_no_node(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    device = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    server = Sleeper(name="full", replicas=0, nodes=("node-c",), container=device)
    try:
        cluster.verb("fake-gpus", "node-c", "1")
        accepted(kubectl, server)
        add = Autoscaler(kubectl, "full", lambda: cluster.verb("fake-gpus", "node-c", "2"))
        with add as autoscaler:
            kubectl.scale("deployment", server.name, 2)
            seen = kubectl.get("pod", autoscaler.wait_added(60))
        # The builder it is where the other took the device first; "" where the operator knew of no
        # room before the pod came.
        assert injected(seen) and released(seen) in ("ReleasedNoCapacity", "ReleasedForBuild", "")
        pods.wait_ready(kubectl, server.name, 2, 60)
    finally:
        kubectl.delete("deployment", server.name)
        cluster.verb("fake-gpus", "node-c", "0")


def test_node_is_added_for_a_held_pod_that_fits_no_node(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    """The last node goes, and a pod comes, while no operator is there to see either."""
    server = Sleeper(name="gone", replicas=0, nodes=(FRESH,))
    try:
        cluster.verb("node-up", FRESH)
        product.wait_ready()
        warmup = accepted(kubectl, server)
        wait_for("new pods are held", lambda: warmup.injection.get("gate"), 30, kubectl)
        product.scale_operator(0)
        cluster.verb("node-down", FRESH, "--purge")
        kubectl.scale("deployment", server.name, 1)
        (held,) = wait_for("its pod", lambda: pods.of(kubectl, server.name), 30, kubectl)
        assert gated(held)
        with Autoscaler(kubectl, "gone", lambda: cluster.verb("node-up", FRESH)) as autoscaler:
            product.scale_operator(2)
            assert autoscaler.wait_added(120) == pods.name(held)
        (pod,) = pods.wait_ready(kubectl, server.name, 1, 90)
        assert released(pod) in ("ReleasedNoCapacity", "ReleasedHoldingDisabled")
        assert injected(pod) and pods.restarts(pod) == 0
    finally:
        product.scale_operator(2)
        kubectl.delete("deployment", server.name)
        cluster.verb("node-down", FRESH, "--purge")
        product.wait_ready()
