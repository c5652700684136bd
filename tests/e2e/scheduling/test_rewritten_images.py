# SPDX-License-Identifier: Apache-2.0
"""A cluster's policy rewrites the image of every new pod, as a pull-through mirror does: the pods
that run are built for and start warm, and so do builder Jobs."""

import pytest
from harness import pods
from harness.compiler import CACHE, assert_cold, assert_hit, compiler
from harness.gates import small_pod
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, add_pod
from harness.waiting import wait_for
from harness.warmup import Warmup, injected, warmup_for

# An image that no registry serves: a pod whose image the policy does not rewrite cannot start.
TEMPLATE = "mirrored.example/workload:1"
RUNNING = "localhost/busybox:1"
IMAGES = f"""[JSONPatch{{
  op: "replace", path: "/spec/containers/0/image", value: "{RUNNING}"
}}]"""


def rewriting(kubectl: Kubectl) -> tuple[dict, dict]:
    """From now on the first container of every new pod in the namespace runs RUNNING."""
    creates = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    is_mirrored = f'object.spec.containers[0].image == "{TEMPLATE}"'
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": f"mirror.{kubectl.namespace}.example.com"},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [creates]},
            "matchConditions": [{"name": "mirrored", "expression": is_mirrored}],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": IMAGES}}],
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


def image(pod: dict) -> str:
    return pod["spec"]["containers"][0]["image"]


@pytest.fixture
def mirrored(kubectl: Kubectl):
    things = rewriting(kubectl)
    probe = small_pod("probe")
    probe["spec"]["containers"][0]["image"] = TEMPLATE

    def obeyed() -> bool:
        return image(kubectl.create(probe, "--dry-run=server")) == RUNNING

    try:
        kubectl.apply(*things)
        wait_for("the policy of the test is obeyed", obeyed, 60, kubectl)
        yield
    finally:
        for thing in reversed(things):
            kubectl.delete(thing["kind"].lower(), pods.name(thing))


def server(name: str, node: str) -> Sleeper:
    return compiler(name, nodes=(node,), image=TEMPLATE)


def assert_built_once(warmup: Warmup) -> None:
    (bundle,) = warmup.bundles
    assert bundle["image"] == RUNNING, bundle
    (builder,) = warmup.builders
    assert builder["state"] == "Captured" and builder["attempt"] == 1, builder
    admitted = warmup.status["admitted"]
    assert admitted["image"] == RUNNING, admitted


def test_pods_of_a_rewritten_image_get_one_bundle_and_start_warm(
    kubectl: Kubectl, product: Product, mirrored
):
    workload = server("mirrored", "node-a")
    warmup = accept(kubectl, workload, caches=[CACHE])
    warmup.wait_admission(workload.pod("other"))
    first = add_pod(kubectl, workload.name)
    assert image(first) == RUNNING and injected(first)
    assert_cold(kubectl, first)
    warmup.wait_warm()
    assert_built_once(warmup)
    assert_hit(kubectl, add_pod(kubectl, workload.name))
    product.restart("operator")
    assert_hit(kubectl, add_pod(kubectl, workload.name))
    warmup.wait_condition("Warm", "True", "Distributed")
    assert_built_once(warmup)


def test_builder_job_of_a_rewritten_image_is_accepted(kubectl: Kubectl, product: Product, mirrored):
    workload = server("mirrored-job", "node-a")
    deployment = workload.deployment()
    kubectl.apply(deployment, warmup_for(deployment, caches=[CACHE]))
    warmup = Warmup(kubectl, workload.name)
    warmup.wait_injecting()
    warmup.wait_warm()
    assert_built_once(warmup)
    warmup.wait_admission(workload.pod("other"))
    assert_hit(kubectl, add_pod(kubectl, workload.name))
