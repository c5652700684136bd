# SPDX-License-Identifier: Apache-2.0
"""Beside the real Kueue: it decides who has quota, we decide who waits for a bundle, and nobody
waits for both, or for the other for ever."""

import pytest

from harness import pods
from harness.compiler import CACHE, assert_hit, compiler
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import until_ready, until_released
from harness.waiting import wait_for
from harness.warmup import GATE, Warmup, gated, injected, released, warmup_for

# Of a pod that waits for quota; every one has the second too, with or without a topology.
KUEUES = {"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"}
QUEUE = "kueue.x-k8s.io/queue-name"
API = "kueue.x-k8s.io/v1beta1"
SHARE = {"requests": {"cpu": "100m"}}  # the whole quota: there is room for one pod
HOLD = {"gate": {"mode": "Hold", "maxHoldSeconds": 900}, "compile": {"builder": "FirstPod"}}


@pytest.fixture
def queue(kueue, kubectl: Kubectl):
    """The name of a LocalQueue in the test's namespace, with quota for one pod."""
    name = kubectl.namespace
    resources = [{"name": "cpu", "nominalQuota": SHARE["requests"]["cpu"]}]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": resources}]}]
    kubectl.apply(
        {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": name}},
        {
            "apiVersion": API,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {"namespaceSelector": {}, "resourceGroups": groups},
        },
        {
            "apiVersion": API,
            "kind": "LocalQueue",
            "metadata": {"name": name},
            "spec": {"clusterQueue": name},
        },
    )
    yield name
    for kind in ("clusterqueue", "resourceflavor"):
        kubectl.delete(kind, name, "--wait=false")


def of_queue(thing: dict, queue: str) -> dict:
    thing["metadata"].setdefault("labels", {})[QUEUE] = queue
    return thing


def sleeper(name: str) -> Sleeper:
    return Sleeper(name=name, replicas=0, container={"resources": SHARE})


def holding(kubectl: Kubectl, server: Sleeper) -> Warmup:
    """A Deployment that knows nothing of Kueue, and every new pod of its labels is held."""
    kubectl.apply(server.deployment(), warmup_for(server.deployment(), **HOLD))
    warmup = Warmup(kubectl, server.name)
    warmup.wait_injecting()
    wait_for("new pods are held", lambda: warmup.injection.get("gate"), 30, kubectl)
    warmup.wait_admission(server.pod("probe"))
    return warmup


def take_quota(kubectl: Kubectl, queue: str) -> dict:
    return until_ready(kubectl, kubectl.create(of_queue(sleeper("first").pod("first"), queue)))


def test_pod_with_both_gates_is_released_and_waits_for_quota(
    kubectl: Kubectl, product: Product, queue: str
):
    first = take_quota(kubectl, queue)
    server = sleeper("queued")
    holding(kubectl, server)
    made = kubectl.create(of_queue(server.pod("queued-0"), queue))
    assert set(pods.gates(made)) == {GATE, *KUEUES}
    free = until_released(kubectl, made, 60)
    assert released(free) == "ReleasedOtherGate" and set(pods.gates(free)) == KUEUES
    kubectl.kill_pod(pods.name(first))
    ready = until_ready(kubectl, made, 60)
    assert injected(ready) and pods.restarts(ready) == 0


def test_pod_admitted_by_kueue_is_not_held(kubectl: Kubectl, product: Product, queue: str):
    """It has quota: while it waited for us, nobody else could use it."""
    server = sleeper("admitted")
    holding(kubectl, server)
    until_ready(kubectl, kubectl.create(server.pod("builder")))
    product.scale_operator(0)
    try:
        made = kubectl.create(of_queue(server.pod("admitted-0"), queue))

        def admitted() -> bool:
            return pods.gates(kubectl.get("pod", "admitted-0")) == [GATE]

        wait_for("Kueue admits it", admitted, 60, kubectl)
    finally:
        product.scale_operator(2)
    ready = until_ready(kubectl, made, 60)
    assert released(ready) == "ReleasedOtherGate" and injected(ready)


def test_queued_deployment_starts_warm_when_it_gets_quota(
    kubectl: Kubectl, product: Product, queue: str
):
    """Its second pod waits for quota while the first one compiles."""
    server = compiler("served", ("node-a", "node-b"), resources=SHARE)
    wanted = of_queue(server.deployment(), queue)
    kubectl.apply(wanted, warmup_for(wanted, caches=[CACHE], **HOLD))
    warmup = Warmup(kubectl, server.name)
    warmup.wait_injecting()
    assert not warmup.injection.get("gate")

    kubectl.scale("deployment", server.name, 2)

    def by_readiness(ready: bool) -> list[dict]:
        return [pod for pod in pods.of(kubectl, server.name) if pods.ready(pod) is ready]

    (first,) = wait_for("one has quota and is Ready", lambda: by_readiness(True), 240, kubectl)
    (second,) = by_readiness(False)
    assert set(pods.gates(second)) == KUEUES and injected(first) and injected(second)
    warmup.wait_warm()
    kubectl.kill_pod(pods.name(first))
    (next_one,) = wait_for("the next one is Ready", lambda: by_readiness(True), 120, kubectl)
    assert pods.name(next_one) != pods.name(first) and not gated(next_one)
    assert_hit(kubectl, next_one)


def test_queued_job_is_not_held_after_kueue_starts_it(
    kubectl: Kubectl, product: Product, queue: str
):
    """Kueue holds a whole Job, by spec.suspend, and says so on the Job and not on its pods."""
    first = take_quota(kubectl, queue)
    template = sleeper("batch").template()
    template["spec"]["restartPolicy"] = "Never"
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "batch"}}
    job["spec"] = {"template": template, "backoffLimit": 0}
    kubectl.apply(of_queue(job, queue), warmup_for(job, **HOLD))
    warmup = Warmup(kubectl, "batch")
    warmup.wait_injecting()
    assert kubectl.get("job", "batch")["spec"]["suspend"] and not pods.of(kubectl, "batch")
    assert not warmup.injection.get("gate")

    kubectl.kill_pod(pods.name(first))
    (pod,) = wait_for("its pod", lambda: pods.of(kubectl, "batch"), 60, kubectl)
    ready = until_ready(kubectl, pod, 60)
    assert injected(ready) and released(ready) == "" and not gated(pod)
