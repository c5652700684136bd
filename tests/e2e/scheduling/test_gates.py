# SPDX-License-Identifier: Apache-2.0
"""Holding only while it pays, once a rollout, and never where it could break a promise."""

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.compiler import BUNDLE_BYTES, CACHE, assert_cold, assert_hit, compiler
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, add_pod, until_ready, until_released
from harness.waiting import wait_for
from harness.warmup import (
    GATE,
    Warmup,
    gated,
    injected,
    make_warmup,
    released,
    wait_event,
    warmup_for,
)

# Bytes a second of what the registry sends; a bundle has BUNDLE_BYTES. BESIDE it is there long
# before an image of 1 MB.
SOON = "12000"
NEVER = "500"
BESIDE = "100000"
KUEUE = "kueue.x-k8s.io/admission"


def published(
    kubectl: Kubectl,
    cluster: Cluster,
    server: Sleeper,
    rate: str,
    **gate,
) -> Warmup:
    """One pod of `server` has compiled, its bundle is published, and the nodes begin to fetch it
    at `rate`."""
    warmup = accept(kubectl, server, gate=gate, caches=[CACHE])
    cluster.verb("registry-throttle", rate)
    kubectl.scale("deployment", server.name, 1)
    pods.wait_ready(kubectl, server.name, 1, 180)
    warmup.wait_bundles(1)
    return warmup


def compiles(name: str, seconds: int = 20, **container) -> Sleeper:
    """By default for longer than a fetch at the rate SOON takes."""
    nodes = ("node-a", "node-b")
    return compiler(name, nodes, seconds=seconds, size=BUNDLE_BYTES, **container)


def held_seconds(pod: dict) -> float:
    return float(pods.annotation(pod, "cachewarm.io/held-seconds"))


def test_auto_mode_holds_a_pod_only_for_a_short_fetch(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    server = compiles("soon")
    warmup = published(kubectl, cluster, server, SOON, mode="Auto")
    # Not over before the pod is there; a fetch that stands still is expected to be soon done too.
    cluster.verb("registry-throttle", "0")
    first = pods.of(kubectl, server.name)[0]
    assert injected(first) and released(first) == ""
    pod = add_pod(kubectl, server.name)
    assert gated(pod), warmup.injection
    cluster.verb("registry-throttle", "unlimited")
    free = until_released(kubectl, pod)
    assert released(free) == "ReleasedWarm"
    assert_hit(kubectl, pod)


def test_fetch_runs_beside_the_image_pull(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    server = compiles("pulls", seconds=10, image=cluster.push_unseen_image())
    apart = {"labelSelector": {"matchLabels": {"app": server.name}}, "maxSkew": 1}
    apart |= {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    server.spec["topologySpreadConstraints"] = [apart]
    warmup = accept(kubectl, server, gate={"mode": "Never"}, caches=[CACHE])
    kubectl.scale("deployment", server.name, 1)
    first = wait_for("a pod", lambda: pods.of(kubectl, server.name), 30, kubectl)[0]
    wait_event(kubectl, pods.name(first), "Started")
    cluster.verb("registry-throttle", NEVER)
    warmup.wait_bundles(1)
    second = add_pod(kubectl, server.name)
    wait_event(kubectl, pods.name(second), "Pulling")
    here = pods.node(kubectl.get("pod", pods.name(second)))
    assert not warmup.active_on(here), "the fetch had ended before the pull began"
    cluster.verb("registry-throttle", BESIDE)
    assert_hit(kubectl, second)
    ready = kubectl.get("pod", pods.name(second))
    assert injected(ready) and released(ready) == ""


def test_auto_mode_does_not_wait_for_a_fetch_that_costs_more_than_it_saves(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    server = compiles("never")
    published(kubectl, cluster, server, NEVER, mode="Auto", maxHoldSeconds=900)
    pod = add_pod(kubectl, server.name)
    free = until_released(kubectl, pod)
    # "" if the operator knew it before the pod was created.
    assert released(free) in ("ReleasedNotWorthWaiting", "")
    if released(free):
        assert held_seconds(free) < 31
    assert_cold(kubectl, pod)


def test_rollout_waits_once_and_not_per_pod(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    server = compiles("once", seconds=5)
    published(kubectl, cluster, server, NEVER, mode="Hold", maxHoldSeconds=15)
    first = add_pod(kubectl, server.name)
    assert gated(first)
    free = until_released(kubectl, first, 60)
    assert released(free) == "ReleasedAtDeadline"
    assert held_seconds(free) >= 14
    second = until_released(kubectl, add_pod(kubectl, server.name), 60)
    assert released(second) == "ReleasedAtDeadline"
    assert held_seconds(second) < 10


def test_cachewarm_gate_is_removed_before_the_kueue_gate(kubectl: Kubectl, product: Product):
    server = Sleeper(name="queued", replicas=0)
    desired = warmup_for(
        server.deployment(),
        gate={"mode": "Hold", "maxHoldSeconds": 300},
        compile={"builder": "FirstPod"},
    )
    kubectl.apply(server.deployment(), desired)
    warmup = Warmup(kubectl, server.name)
    warmup.wait_injecting()
    wait_for("new pods are held", lambda: warmup.injection.get("gate"), 30, kubectl)
    pod = server.pod("queued-0")
    pod["spec"]["schedulingGates"] = [{"name": KUEUE}]
    warmup.wait_admission(pod)
    made = kubectl.create(pod)
    assert pods.gates(made) == [KUEUE, GATE]
    free = until_released(kubectl, made, 60)
    assert released(free) == "ReleasedOtherGate" and pods.gates(free) == [KUEUE]
    kubectl.patch("pod", "queued-0", [{"op": "remove", "path": "/spec/schedulingGates/0"}])
    ready = until_ready(kubectl, made, 60)
    assert injected(ready) and pods.restarts(ready) == 0


def stateful_set(server: Sleeper) -> dict:
    return server.stateful_set()


def recreated(server: Sleeper) -> dict:
    server.strategy = {"type": "Recreate"}
    return server.deployment()


def job_with_deadline(server: Sleeper) -> dict:
    job = server.job()
    job["spec"]["activeDeadlineSeconds"] = 600
    return job


@pytest.mark.parametrize("make", [stateful_set, recreated, job_with_deadline])
def test_hold_mode_does_not_gate_pods_that_may_not_wait(
    kubectl: Kubectl, product: Product, make
):
    server = Sleeper(name="never-held", nodes=("node-a", "node-b"))
    workload = make(server)
    is_job = workload["kind"] == "Job"
    workload["spec"].update({"suspend": True} if is_job else {"replicas": 0})
    kubectl.apply(
        workload, warmup_for(workload, gate={"mode": "Hold"}, compile={"builder": "FirstPod"})
    )
    warmup = Warmup(kubectl, server.name)
    warmup.wait_injecting()
    assert not warmup.injection.get("gate")
    go = {"suspend": False} if is_job else {"replicas": 1}
    kubectl.patch(workload["kind"].lower(), server.name, {"spec": go})
    pod = wait_for("its pod", lambda: pods.of(kubectl, server.name), 60, kubectl)[0]
    assert injected(pod) and not gated(pod)


def test_selected_deployment_keeps_its_minimum_available(
    kubectl: Kubectl, product: Product
):
    server = Sleeper(name="selected", replicas=1)
    kubectl.apply(server.deployment())
    (first,) = pods.wait_ready(kubectl, server.name, 1, 120)
    selector = {"matchLabels": {"app": server.name}}
    kubectl.apply(
        make_warmup(
            server.name,
            selector=selector,
            gate={"mode": "Hold"},
            compile={"builder": "FirstPod"},
        )
    )
    warmup = Warmup(kubectl, server.name)
    warmup.wait_injecting()
    wait_for("new pods are held", lambda: warmup.injection.get("gate"), 30, kubectl)
    recreate = {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}}
    kubectl.patch("deployment", server.name, recreate)
    wait_for("new pods are not", lambda: not warmup.injection.get("gate"), 30, kubectl)
    kubectl.delete("pod", first["metadata"]["name"])
    (second,) = pods.wait_ready(kubectl, server.name, 1, 120)
    assert injected(second) and released(second) == ""
