# SPDX-License-Identifier: Apache-2.0
"""Jobs of the real JobSet: its pods get new names in every run, so its warmup takes them by a label
of their user's. What they are made of it learns from the first run that it sees, which starts
without us; what all ranks of the second compile is there for the third."""

import pytest

from harness import pods
from harness.compiler import CACHE, assert_counted_hit, assert_hit, compiler, trainer
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, released, make_warmup

pytestmark = pytest.mark.usefixtures("job_set")

TWINS = ("node-a", "node-b")  # of one GPU type and CPU class, so that all ranks have one key
RUN = "jobset.sigs.k8s.io/jobset-name"


def job_set(run: str, server: Sleeper) -> dict:
    """One Indexed Job with a rank on each of the twins."""
    template = server.template()
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {RUN: run}},
    }
    template["spec"]["restartPolicy"] = "Never"
    template["spec"]["affinity"]["podAntiAffinity"] = {
        "requiredDuringSchedulingIgnoredDuringExecution": [apart]
    }
    ranks = {"parallelism": len(TWINS), "completions": len(TWINS), "backoffLimit": 0}
    job = {"spec": {**ranks, "completionMode": "Indexed", "template": template}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": run},
        "spec": {"replicatedJobs": [{"name": "ranks", "replicas": 1, "template": job}]},
    }


def of_run(kubectl: Kubectl, run: str) -> list[dict]:
    return kubectl.list("pods", f"{RUN}={run}")


def whole_run(kubectl: Kubectl, run: str) -> list[dict]:
    """Its pods as they are right after the last of them was made."""

    def whole() -> list[dict]:
        members = of_run(kubectl, run)
        return members if len(members) == len(TWINS) else []

    return wait_for(f"the pods of {run}", whole, 60, kubectl)


def wait_complete(kubectl: Kubectl, run: str) -> None:
    """By the words of its own controller."""

    def complete() -> bool:
        said = (kubectl.get("jobset", run) or {}).get("status", {}).get("conditions") or []
        return any(c["type"] == "Completed" and c["status"] == "True" for c in said)

    wait_for(f"{run} is complete", complete, 180, kubectl)


def taught(kubectl: Kubectl, server: Sleeper, **spec) -> Warmup:
    compile_spec = {"builder": "FirstPod", "settleSeconds": 2}
    selector = {"matchLabels": {"app": server.name}}
    kubectl.apply(
        make_warmup(server.name, selector=selector, caches=[CACHE], compile=compile_spec, **spec)
    )
    run = f"{server.name}-0"
    kubectl.apply(job_set(run, server))
    assert not any(injected(pod) for pod in whole_run(kubectl, run))
    warmup = Warmup(kubectl, server.name)
    warmup.wait_injecting()
    warmup.wait_admission(server.pod("probe"))
    return warmup


def test_next_run_hits_with_the_files_of_all_ranks(
    kubectl: Kubectl, product: Product
):
    server = trainer("train", TWINS)
    warmup = taught(kubectl, server)
    kubectl.apply(job_set("train-1", server))
    first = whole_run(kubectl, "train-1")
    assert all(injected(pod) for pod in first)
    wait_complete(kubectl, "train-1")
    (bundle,) = warmup.wait_bundles(1)
    assert bundle["files"] == len(TWINS), "the kernel of each rank"
    (builder,) = warmup.builders
    assert set(builder["ranks"]) == {pod["metadata"]["uid"] for pod in first}
    warmup.wait_warm(60)
    assert warmup.status["summary"]["nodes"] == "2/2", "no node that its pods do not fit"

    kubectl.apply(job_set("train-2", server))
    second = whole_run(kubectl, "train-2")
    assert all(injected(pod) for pod in second)
    wait_complete(kubectl, "train-2")
    for pod in second:
        assert_counted_hit(kubectl, pod)


def test_cold_run_is_held_and_released_as_a_group(kubectl: Kubectl, product: Product):
    server = compiler("held", TWINS)
    warmup = taught(kubectl, server, gate={"mode": "Hold", "maxHoldSeconds": 600})
    wait_for("new pods are held", lambda: warmup.injection.get("gate"), 30, kubectl)
    kubectl.apply(job_set("held-1", server))
    whole_run(kubectl, "held-1")
    kubectl.apply(job_set("held-2", server))
    second = whole_run(kubectl, "held-2")
    assert all(gated(pod) for pod in second), "nothing is there yet to start warm from"

    def free(run: str) -> list[dict]:
        members = of_run(kubectl, run)
        return members if not any(gated(pod) for pod in members) else []

    builders = wait_for("the first run is released", lambda: free("held-1"), 60, kubectl)
    assert "ReleasedForBuild" in {released(pod) for pod in builders}
    assert {released(pod) for pod in builders} <= {"ReleasedForBuild", "ReleasedWithGroup", ""}
    warmup.wait_bundles(1)
    warm = wait_for("the second run is released", lambda: free("held-2"), 120, kubectl)
    assert {released(pod) for pod in warm} <= {"ReleasedWarm", "ReleasedWithGroup"}
    for pod in warm:
        assert_hit(kubectl, pod)
    assert all(pods.restarts(pod) == 0 for pod in of_run(kubectl, "held-2"))
