# SPDX-License-Identifier: Apache-2.0
"""Warm before the first pod: builder Jobs for workloads without pods, and nodes that join later."""

import pytest
from harness import pods
from harness.cluster import NODES, Cluster
from harness.compiler import CACHE, PORT, assert_hit, assert_warm, compiler
from harness.kubectl import Kubectl
from harness.product import H100, Product
from harness.waiting import wait_for
from harness.warmup import Warmup, make_warmup, warmup_for

ASLEEP = compiler("asleep")
ASLEEP.one_per_node = True
BARE = compiler("bare")


def service(name: str, selector: dict[str, str]) -> dict:
    spec = {"selector": selector, "ports": [{"port": 80, "targetPort": PORT}]}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": spec,
    }


def addresses(kubectl: Kubectl, service_name: str) -> set[str]:
    """Every pod that the Service knows, whether it gets traffic or not."""
    slices = kubectl.list("endpointslices", f"kubernetes.io/service-name={service_name}")
    endpoints = [endpoint for each in slices for endpoint in each.get("endpoints") or []]
    return {endpoint.get("targetRef", {}).get("name", "?") for endpoint in endpoints}


@pytest.fixture
def asleep(shared: Kubectl, product: Product) -> Warmup:
    return Warmup(shared, ASLEEP.name)


@pytest.fixture
def bare(shared: Kubectl, product: Product) -> Warmup:
    return Warmup(shared, BARE.name)


def test_jobs_without_traffic_warm_a_workload_without_replicas(
    shared: Kubectl, asleep: Warmup
):
    deployment = ASLEEP.deployment()
    deployment["spec"]["replicas"] = 0
    everything = service("everything", ASLEEP.selector)
    shared.apply(deployment, everything, warmup_for(deployment, caches=[CACHE]))
    seen: set[str] = set()

    def warm() -> bool:
        seen.update(pods.name(pod) for pod in asleep.job_pods())
        assert addresses(shared, "everything") == set()
        assert pods.of(shared, ASLEEP.name) == []
        return asleep.condition("Warm").get("status") == "True"

    wait_for("the workload is warm without a pod of its own", warm, 300, shared)
    assert len(seen) == 2, seen
    assert sorted(bundle["gpuType"] for bundle in asleep.bundles) == ["cpu", H100]
    assert all(builder["job"] and builder["attempt"] == 1 for builder in asleep.builders)
    wait_for("the Jobs are gone", lambda: not asleep.jobs() and not asleep.job_pods(), 60, shared)


def test_every_pod_hits_after_scale_up(shared: Kubectl, asleep: Warmup):
    for count in range(1, len(NODES) + 1):
        shared.scale("deployment", ASLEEP.name, count)
        pods.wait_ready(shared, ASLEEP.name, count, 180)
    running = pods.of(shared, ASLEEP.name)
    assert {pods.node(pod) for pod in running} == set(NODES)
    for pod in running:
        assert_hit(shared, pod)
    assert addresses(shared, "everything") == {pods.name(pod) for pod in running}
    asleep.wait_counted({"builder": 2, "hit": len(NODES)})


def test_bare_template_is_warmed_before_its_first_pod(shared: Kubectl, bare: Warmup):
    settings = {"caches": [CACHE], "compile": {"settleSeconds": 2}}
    shared.apply(make_warmup(BARE.name, template=BARE.template(), **settings))
    bare.wait_warm(300)
    assert sorted(bundle["gpuType"] for bundle in bare.bundles) == ["cpu", H100]
    shared.apply(BARE.pod("on-its-own"))
    assert_hit(shared, shared.get("pod", "on-its-own"))


def test_joining_node_gets_the_bundle(
    shared: Kubectl, bare: Warmup, cluster: Cluster
):
    (bundle,) = (b for b in bare.bundles if b["gpuType"] == "cpu")
    try:
        cluster.verb("node-up", "node-d")
        wait_for(
            "node-d has the bundle",
            lambda: bundle["digest"] in bare.active_on("node-d"),
            240,
            shared,
        )
        pod = BARE.pod("on-the-new-node")
        pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-d"}
        shared.apply(pod)
        assert_warm(shared, shared.get("pod", "on-the-new-node"))
        assert bundle in [{**b, **spread_of(bundle)} for b in bare.bundles]
    finally:
        shared.delete("pod", "on-the-new-node", "--grace-period=0", "--force")
        cluster.verb("node-down", "node-d", "--purge")


def spread_of(bundle: dict) -> dict:
    """The members that count nodes, which a new node changes."""
    return {name: bundle[name] for name in bundle if name.startswith("nodes")}
