# SPDX-License-Identifier: Apache-2.0
"""Rollouts keep what they promise: a gate never lets availability drop below it, never makes a
rollout fail its deadline, and never takes a device or a place that the user did not give."""

import pytest
from harness import pods
from harness.availability import Watched
from harness.cluster import Cluster
from harness.compiler import CACHE as KERNELS
from harness.compiler import compiler, trainer
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, warm_up
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, released, warmup_for

NODES = ("node-a", "node-b")
# A gate that would wait far longer than any rollout here may take, were it not to step aside.
PATIENT = {"mode": "Hold", "maxHoldSeconds": 300}
CACHE = {"name": "mine", "env": "MY_CACHE", "path": "mine"}
PROGRESSING = 'status.conditions[?(@.type=="Progressing")].reason'


# Workloads compile a kernel in five seconds of shell: what is judged are pods, not code.
IMAGE = "localhost/busybox:1"


def roll(
    kubectl: Kubectl, cluster: Cluster, server: Sleeper, kind: str = "deployment"
) -> list[dict]:
    """To the next image; waits until kubectl says that it is out. Returns the pods that have it.
    The status of a Deployment is a sum over ReplicaSets, of which one may not have caught up."""
    image = cluster.another_tag(IMAGE, "next")
    kubectl.run("set", "image", f"{kind}/{server.name}", f"server={image}")
    kubectl.run("rollout", "status", f"{kind}/{server.name}", "--timeout=300s", seconds=310)

    def ready() -> list[dict]:
        found = pods.of(kubectl, server.name)
        rolled = [pod for pod in found if pod["spec"]["containers"][0]["image"] == image]
        return rolled if all(pods.ready(pod) for pod in rolled) else []

    return wait_for("the pods of the next image are ready", ready, 60, kubectl)


def warm(kubectl: Kubectl, server: Sleeper, **gate: object) -> Warmup:
    return warm_up(kubectl, server, gate=gate, caches=[KERNELS])


def test_rolling_update_with_surge_never_falls_below_its_replicas(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    server = compiler("surge", NODES)
    server.strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    warm(kubectl, server, **PATIENT)
    # Kubelet can report a new pod as not ready for a moment, right after it became Ready. With
    # minReadySeconds no old pod ends in that moment.
    kubectl.patch("deployment", server.name, {"spec": {"minReadySeconds": 2, "replicas": 2}})
    wait_for(
        "both are available",
        lambda: kubectl.get("deployment", server.name)["status"].get("availableReplicas") == 2,
        180,
        kubectl,
    )
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": server.name},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": server.selector}},
    }
    kubectl.apply(budget)
    wait_for(
        "the budget counts",
        lambda: kubectl.get("pdb", server.name)["status"].get("currentHealthy") == 2,
        30,
        kubectl,
    )
    with (
        Watched(kubectl, "deployment", server.name, "status.availableReplicas") as available,
        Watched(kubectl, "pods", "", "metadata.name") as there,
        Watched(kubectl, "pdb", server.name, "status.currentHealthy") as healthy,
    ):
        rolled = roll(kubectl, cluster, server)
    assert available.lowest >= 2 and healthy.lowest >= 2
    # Not status.replicas: a sum over ReplicaSets, of which one may not have caught up.
    assert len(there.distinct) == 4, "two that were there, and one in the place of each"
    assert len(rolled) == 2 and all(released(pod) for pod in rolled), "each was held and released"


def test_rollout_under_load_elects_no_rebuild(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    """Pods of the new image start on nodes with the old image's bundle, before and while these
    nodes get the new one. Such a start is cold: a miss would have the bundle built again."""
    server = compiler("loaded", NODES)
    warmup = warm(kubectl, server, mode="Never")
    kubectl.scale("deployment", server.name, 6)
    pods.wait_ready(kubectl, server.name, 6, 120)
    wait_for("each start is counted", lambda: sum(warmup.counts.values()) >= 6, 120, kubectl)
    assert len(roll(kubectl, cluster, server)) == 6
    wait_for("each start is counted", lambda: sum(warmup.counts.values()) >= 12, 120, kubectl)
    counts = warmup.counts
    assert counts.get("miss", 0) == counts.get("partial", 0) == 0, counts
    assert len(warmup.bundles) == 2
    assert [build["attempt"] for build in warmup.builders] == [1, 1]


def test_recreate_is_not_held_while_nothing_serves(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    server = compiler("recreate", NODES)
    server.strategy = {"type": "Recreate"}
    warmup = warm(kubectl, server, **PATIENT)
    (pod,) = roll(kubectl, cluster, server)
    assert released(pod) == "", "it was never held"
    assert pods.ready(pod) and injected(pod)
    wait_for("the new image was built", lambda: len(warmup.bundles) == 2, 120, kubectl)


def test_ordered_stateful_set_is_not_held(kubectl: Kubectl, product: Product, cluster: Cluster):
    server = compiler("ordered", NODES)
    server.replicas = 2
    desired = warmup_for(server.stateful_set(), gate=PATIENT, caches=[KERNELS])
    kubectl.apply(server.stateful_set(), desired)
    Warmup(kubectl, server.name).wait_injecting()
    pods.wait_ready(kubectl, server.name, 2, 240)
    wait_for(
        "both count",
        lambda: kubectl.get("statefulset", server.name)["status"].get("availableReplicas") == 2,
        30,
        kubectl,
    )
    with Watched(kubectl, "statefulset", server.name, "status.availableReplicas") as available:
        rolled = roll(kubectl, cluster, server, "statefulset")
    assert available.lowest >= 1
    assert [(injected(pod), released(pod)) for pod in rolled] == [(True, "")] * 2


def test_job_with_a_deadline_ends_within_it(kubectl: Kubectl, product: Product):
    server = trainer("hurried", NODES)
    server.replicas = 1
    job = server.job()
    job["spec"].update({"activeDeadlineSeconds": 60, "suspend": True})
    compile_spec = {"builder": "FirstPod"}
    kubectl.apply(job, warmup_for(job, gate=PATIENT, caches=[KERNELS], compile=compile_spec))
    Warmup(kubectl, server.name).wait_injecting()
    kubectl.patch("job", server.name, {"spec": {"suspend": False}})
    pod = wait_for("its pod", lambda: pods.of(kubectl, server.name), 30, kubectl)[0]
    assert injected(pod) and not gated(pod)
    wait_for(
        "the Job is complete",
        lambda: kubectl.get("job", server.name)["status"].get("succeeded") == 1,
        90,
        kubectl,
    )
    conditions = kubectl.get("job", server.name)["status"]["conditions"]
    assert not [c for c in conditions if c["type"] == "Failed"], conditions
    assert released(pods.of(kubectl, server.name)[0]) == "", "it was never held"


def quota(pods_most: int) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "pods"},
        "spec": {"hard": {"pods": str(pods_most)}},
    }


def without_a_surge() -> Sleeper:
    server = compiler("tight", NODES[:1])
    server.strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    return server


def assert_rolls(kubectl: Kubectl, cluster: Cluster, server: Sleeper) -> None:
    (pod,) = roll(kubectl, cluster, server)
    assert pods.ready(pod) and injected(pod)
    assert released(pod) == "", "it was never held"


@pytest.mark.parametrize("gate", ["Auto", "Hold"])
def test_full_quota_does_not_stop_a_rollout_without_surge(
    kubectl: Kubectl, product: Product, cluster: Cluster, gate: str
):
    """Room for one pod only: what must go first goes first, and its place is not waited for."""
    server = without_a_surge()
    kubectl.apply(quota(1))
    warm(kubectl, server, mode=gate, maxHoldSeconds=300)
    assert_rolls(kubectl, cluster, server)


def test_builder_job_frees_the_last_pod_of_a_full_quota(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    """It has the place before the first pod is asked for, and may have it between two."""
    server = without_a_surge()
    kubectl.apply(quota(1))
    warmup = accept(kubectl, server, gate=PATIENT, caches=[KERNELS], compile={"builder": "Job"})
    wait_for("the Job has the place", warmup.job_pods, 60, kubectl)
    kubectl.scale("deployment", server.name, 1)
    pods.wait_ready(kubectl, server.name, 1, 240)
    assert_rolls(kubectl, cluster, server)


def slow_to_serve(name: str, seconds: int, **more: object) -> Sleeper:
    """Serves so long after its start, warm or cold; what it compiles is a file."""
    script = f"""
[ -f "$MY_CACHE/kernel" ] || echo compiled > "$MY_CACHE/kernel"
sleep {seconds}
touch /tmp/ready
exec sleep 3600
"""
    ready = {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1}
    return Sleeper(
        name=name, nodes=NODES, script=script, container={"readinessProbe": ready}, **more
    )


@pytest.mark.parametrize(
    "serves_after,deadline,is_held",
    [(0, 40, True), (14, 24, False)],
)
def test_rollout_without_a_bundle_meets_its_progress_deadline(
    kubectl: Kubectl,
    product: Product,
    cluster: Cluster,
    serves_after: int,
    deadline: int,
    is_held: bool,
):
    """A hold and, in the worst case, a cold start after it: both have to fit, or none is held."""
    deployment = slow_to_serve("urgent", serves_after, replicas=0).deployment()
    deployment["spec"]["progressDeadlineSeconds"] = deadline
    deployment["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    desired = warmup_for(deployment, gate=PATIENT, caches=[CACHE], compile={"builder": "FirstPod"})
    kubectl.apply(deployment, desired)
    warmup = Warmup(kubectl, "urgent")
    warmup.wait_injecting()
    kubectl.scale("deployment", "urgent", 2)
    pods.wait_ready(kubectl, "urgent", 2, 90)
    warmup.wait_warm()

    next_image = cluster.another_tag(IMAGE, "next")
    cluster.verb("registry-throttle", "0")
    with Watched(kubectl, "deployment", "urgent", PROGRESSING) as reasons:
        kubectl.run("set", "image", "deployment/urgent", f"server={next_image}")
        kubectl.run("rollout", "status", "deployment/urgent", "--timeout=90s", seconds=100)
    assert "ProgressDeadlineExceeded" not in reasons.distinct
    rolled = pods.wait_ready(kubectl, "urgent", 2, 30)
    assert all(injected(pod) for pod in rolled)
    longest = max(float(pods.annotation(p, "cachewarm.io/held-seconds") or 0) for p in rolled)
    assert (longest > 2) == is_held, [released(pod) for pod in rolled]
    assert longest <= deadline / 2 + 5, "half of it, and the release"
    assert len(warmup.bundles) == 1, "the new one never came"


def test_builder_job_frees_its_quota_for_a_workload_pod(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    """Room for the workload's pods at their most and for none beside them. The Job has a place only
    while no user pod needs it, though it would not end by itself."""
    deployment = slow_to_serve("squeezed", 0).deployment()
    deployment["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    forever = "trap '' TERM; while :; do sleep 0.2; done"
    compile_spec = {"builder": "Job", "overrides": {"command": ["/bin/sh", "-c", forever]}}
    desired = warmup_for(deployment, gate=PATIENT, caches=[CACHE], compile=compile_spec)
    kubectl.apply(quota(2), deployment, desired)
    warmup = Warmup(kubectl, "squeezed")
    warmup.wait_injecting()
    pods.wait_ready(kubectl, "squeezed", 1, 60)
    wait_for("a Job compiles", lambda: warmup.job_pods(), 60, kubectl)
    kubectl.scale("deployment", "squeezed", 2)
    pods.wait_ready(kubectl, "squeezed", 2, 60)
    assert warmup.builders[0]["reason"] == "BuilderLost"

    kubectl.scale("deployment", "squeezed", 1)
    next_image = cluster.another_tag(IMAGE, "next")
    with Watched(kubectl, "deployment", "squeezed", "status.availableReplicas") as available:
        kubectl.run("set", "image", "deployment/squeezed", f"server={next_image}")
        kubectl.run("rollout", "status", "deployment/squeezed", "--timeout=60s", seconds=70)
    assert available.lowest >= 1
    pods.wait_ready(kubectl, "squeezed", 1, 60)
