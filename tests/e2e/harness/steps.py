# SPDX-License-Identifier: Apache-2.0
"""Steps that many tests share: bring a Deployment under a warmup, add a pod, follow it."""

from . import pods, starts
from .kubectl import Kubectl
from .model_server import ModelServer
from .sleeper import Sleeper
from .waiting import wait_for
from .warmup import DIRECTORY, Warmup, gated, warmup_for


def accept(kubectl: Kubectl, server: ModelServer | Sleeper, **spec) -> Warmup:
    """The Deployment with no pod yet, its warmup, and new pods get the cache. The first pod that
    starts is the builder, unless `compile` says otherwise."""
    deployment = server.deployment()
    deployment["spec"]["replicas"] = 0
    # No hold lasts longer than half of it, and a cold start takes minutes on a slow machine.
    deployment["spec"]["progressDeadlineSeconds"] = 3600
    kubectl.apply(deployment)
    spec["compile"] = {"builder": "FirstPod", **spec.get("compile", {})}
    kubectl.apply(warmup_for(deployment, **spec))
    warmup = Warmup(kubectl, server.name)
    warmup.wait_injecting()
    return warmup


def warm_up(kubectl: Kubectl, server: ModelServer | Sleeper, **spec) -> Warmup:
    """accept(), one pod, and its bundle is on every node that fits."""
    warmup = accept(kubectl, server, **spec)
    kubectl.scale("deployment", server.name, 1)
    pods.wait_ready(kubectl, server.name, 1, 240)
    warmup.wait_warm()
    return warmup


def add_pod(kubectl: Kubectl, app: str) -> dict:
    """One replica more; returns its pod as it is right after its creation."""
    known = {pods.name(pod) for pod in pods.of(kubectl, app)}
    kubectl.scale("deployment", app, len(known) + 1)
    return _successor(kubectl, app, known)


def replace(kubectl: Kubectl, pod: dict) -> dict:
    """Deletes a pod; returns the one that is made instead, right after its creation."""
    app = pod["metadata"]["labels"]["app"]
    known = {pods.name(each) for each in pods.of(kubectl, app)}
    kubectl.kill_pod(pods.name(pod))
    return _successor(kubectl, app, known)


def _successor(kubectl: Kubectl, app: str, known: set[str]) -> dict:
    def made() -> dict | None:
        return next((p for p in pods.of(kubectl, app) if pods.name(p) not in known), None)

    return wait_for(f"a new pod of {app}", made, 60, kubectl)


def until_released(kubectl: Kubectl, pod: dict, seconds=120.0) -> dict:
    def free() -> dict | None:
        now = kubectl.get("pod", pods.name(pod))
        return now if now and not gated(now) else None

    return wait_for(f"{pods.name(pod)} is released", free, seconds, kubectl)


def until_ready(kubectl: Kubectl, pod: dict, seconds=180.0) -> dict:
    def now_ready() -> dict | None:
        now = kubectl.get("pod", pods.name(pod))
        return now if now and pods.ready(now) else None

    return wait_for(f"{pods.name(pod)} is Ready", now_ready, seconds, kubectl)


def assert_hit(kubectl: Kubectl, pod: dict) -> starts.Start:
    """Ready in the end, nothing compiled, right numbers; by the pod's own words."""
    ready = until_ready(kubectl, pod)
    start = pods.start(kubectl, ready)
    where = f"{pods.name(ready)} on {pods.node(ready)}"
    assert start.full_hit and start.right, f"{where}: {start}"
    assert start.dir.startswith(DIRECTORY), f"{where}: {start}"
    return start


def assert_cold(kubectl: Kubectl, pod: dict) -> starts.Start:
    ready = until_ready(kubectl, pod)
    start = pods.start(kubectl, ready)
    assert start.cold and start.right, f"{pods.name(ready)} on {pods.node(ready)}: {start}"
    return start
