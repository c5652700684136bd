# SPDX-License-Identifier: Apache-2.0
"""An administrator's policy rejects every update of a pod, so nobody can release a held pod: at
most the first pod is held, and none if the workload has a pod on which a release can be tried."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness import pods
from harness.gates import update_probe
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, add_pod, replace, until_ready
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, wait_event, warmup_for

WORDS = "pods of this namespace are frozen"


def freezing(namespace: str) -> tuple[dict, dict]:
    """A policy that rejects updates of pods of the namespace, and its binding."""
    updates = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["pods"],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"frozen.{namespace}"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"namespaceSelector": here, "resourceRules": [updates]},
            "validations": [{"expression": "false", "message": WORDS}],
        },
    }
    binding = {
        **policy,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": f"frozen.{namespace}", "validationActions": ["Deny"]},
    }
    return policy, binding


@contextmanager
def frozen(kubectl: Kubectl) -> Iterator[None]:
    may_update = update_probe(kubectl)
    try:
        kubectl.apply(*freezing(kubectl.namespace))
        wait_for("updates are rejected", lambda: not may_update(), 60, kubectl)
        yield
    finally:
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            kubectl.delete(kind, f"frozen.{kubectl.namespace}")
    wait_for("updates are allowed again", may_update, 60, kubectl)


def test_pods_are_not_held_while_releases_are_rejected(kubectl: Kubectl, product: Product):
    server = Sleeper(name="frozen")
    warmup = accept(kubectl, server, gate={"mode": "Hold", "maxHoldSeconds": 5})
    warmup.wait_admission(server.pod("probe-of-policy"))
    with frozen(kubectl):
        first = add_pod(kubectl, server.name)
        assert gated(first), "mode Hold holds the first pod"
        seen = warmup.wait_condition("Degraded", "True", "ReleaseRejected")
        assert WORDS in seen["message"], seen["message"]
        wait_for(
            "the status holds no further pod",
            lambda: not warmup.status["injection"]["gate"],
            30,
            kubectl,
        )

        def not_held() -> bool:
            # The policy reads the new status a moment after it was written.
            pod = kubectl.create(server.pod("probe-of-gate"), "--dry-run=server")
            return not gated(pod)

        wait_for("new pods are not held", not_held, 60, kubectl)
        second = replace(kubectl, first)
        assert not gated(second)
        until_ready(kubectl, second)
        assert pods.restarts(kubectl.get("pod", pods.name(second))) == 0


def test_no_pod_is_held_where_a_dry_run_of_a_release_is_rejected(
    kubectl: Kubectl, product: Product
):
    server = Sleeper(name="frozen-before")
    deployment = server.deployment()
    kubectl.apply(deployment)
    pods.wait_ready(kubectl, server.name, 1, 60)
    with frozen(kubectl):
        gate = {"mode": "Hold", "maxHoldSeconds": 5}
        kubectl.apply(warmup_for(deployment, gate=gate, compile={"builder": "FirstPod"}))
        warmup = Warmup(kubectl, server.name)
        seen = warmup.wait_condition("Degraded", "True", "ReleaseRejected")
        assert WORDS in seen["message"], seen["message"]
        assert WORDS in wait_event(kubectl, server.name, "ReleaseRejected")["note"]
        warmup.wait_injecting()
        pod = add_pod(kubectl, server.name)
        assert injected(pod) and not gated(pod)
        until_ready(kubectl, pod)
