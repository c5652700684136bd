# SPDX-License-Identifier: Apache-2.0
"""A user's policy changes every pod that is updated, also by cachewarm's releases: held pods are
released nevertheless."""

import json

import pytest
from harness import pods
from harness.gates import held_pod, small_pod
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, add_pod, until_ready, until_released
from harness.waiting import wait_for
from harness.warmup import gated, released

MARK = "example.com/updated"
MARKS = f"""Object{{metadata: Object.metadata{{
  labels: {{"{MARK}": "yes"}}, annotations: {{"{MARK}": "by a policy"}}
}}}}"""


def marking(kubectl: Kubectl) -> tuple[dict, dict]:
    """From now on every update of a pod in the namespace adds a label and an annotation."""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["pods"],
    }
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": f"{kubectl.namespace}.example.com"},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [rule]},
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": MARKS}}
            ],
        },
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}}
    binding = {
        **policy,
        "kind": "MutatingAdmissionPolicyBinding",
        "spec": {
            "policyName": policy["metadata"]["name"],
            "matchResources": {"namespaceSelector": here},
        },
    }
    return policy, binding


def is_marked(pod: dict) -> bool:
    label = pod["metadata"].get("labels", {}).get(MARK, "")
    return label == "yes" and pods.annotation(pod, MARK) == "by a policy"


@pytest.fixture
def marked(kubectl: Kubectl):
    things = marking(kubectl)
    probe = small_pod("probe")
    probe["spec"]["schedulingGates"] = [{"name": "example.com/never"}]
    kubectl.create(probe)
    change = json.dumps({"metadata": {"annotations": {"example.com/asked": "yes"}}})
    words = ("patch", "pod", "probe", "--type=merge", "-p", change)

    def obeyed() -> bool:
        return is_marked(json.loads(kubectl.run(*words, "--dry-run=server", "-o", "json")))

    try:
        kubectl.apply(*things)
        wait_for("the policy of the test is obeyed", obeyed, 60, kubectl)
        yield
    finally:
        for thing in reversed(things):
            kubectl.delete(thing["kind"].lower(), pods.name(thing))


@pytest.fixture
def alone(product: Product):
    with product.without_operators():
        yield product


@pytest.fixture
def no_cron_job(product: Product):
    with product.without_cron_job():
        yield


def test_operator_releases_the_builder_and_the_next_pod_at_its_deadline(
    kubectl: Kubectl, product: Product, no_cron_job, marked
):
    # Its builder compiles nothing, so the next pod waits for as long as it may.
    server = Sleeper(name="marked", replicas=0, nodes=("node-a", "node-b"))
    warmup = accept(kubectl, server, gate={"mode": "Hold", "maxHoldSeconds": 30})
    wait_for("new pods are held", lambda: warmup.injection.get("gate"), 30, kubectl)
    warmup.wait_admission(server.pod("other"))
    until_ready(kubectl, add_pod(kubectl, server.name), 60)
    held = add_pod(kubectl, server.name)
    assert gated(held) and not is_marked(held)
    free = until_released(kubectl, held, 90)
    assert released(free) == "ReleasedAtDeadline" and is_marked(free)


def test_cachewarm_release_releases_a_pod_past_its_deadline(
    kubectl: Kubectl, alone: Product, marked
):
    kubectl.apply(held_pod("due", until=-10))
    alone.run_cron_job_now("release-marked")
    free = kubectl.get("pod", "due")
    assert released(free) == "ReleasedAtDeadline" and is_marked(free)
