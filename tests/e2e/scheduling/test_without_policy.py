# SPDX-License-Identifier: Apache-2.0
"""The admission policy goes while the operator runs: new pods start as without us, and those that
are held have their deadline all the same."""

from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, add_pod, until_ready, until_released
from harness.waiting import wait_for
from harness.warmup import gated, injected, released


def test_removed_policy_stops_injection_and_releases_held_pods(
    kubectl: Kubectl, product: Product
):
    # Its builder compiles nothing, so the next pod waits for as long as it may.
    server = Sleeper(name="unseen", replicas=0, nodes=("node-a", "node-b"))
    gate = {"mode": "Hold", "maxHoldSeconds": 40}
    warmup = accept(kubectl, server, gate=gate)
    wait_for("new pods are held", lambda: warmup.injection.get("gate"), 30, kubectl)
    until_ready(kubectl, add_pod(kubectl, server.name), 60)
    held = add_pod(kubectl, server.name)
    assert gated(held)
    kubectl.delete("mutatingadmissionpolicybinding", "cachewarm.io")
    try:
        said = warmup.wait_condition("Ready", "False", "NoAdmission", 90)
        assert "install.yaml" in said["message"], said["message"]
        assert not injected(kubectl.create(server.pod("probe"), "--dry-run=server"))
        free = until_released(kubectl, held, 45)
        assert released(free) in ("ReleasedAtDeadline", "ReleasedHoldingDisabled")
        assert injected(free)
    finally:
        product.install()
    warmup.wait_injecting(90)
