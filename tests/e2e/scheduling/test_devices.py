# SPDX-License-Identifier: Apache-2.0
"""User pods take precedence on devices: beside any builder, a rollout completes on the devices that
there are, and a builder has one only while no user pod needs it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.devices import DeviceBook
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.waiting import wait_for
from harness.warmup import Warmup, injected, warmup_for

NODE = "node-c"
CACHE = {"name": "mine", "env": "MY_CACHE", "path": "mine"}
# Exits on SIGTERM, as a server that drains in time does.
SERVES = """
trap 'exit 0' TERM
[ -f "$MY_CACHE/kernel" ] || echo compiled > "$MY_CACHE/kernel"
touch /tmp/ready
while :; do sleep 0.2; done
"""
# Compiles without an end, and does not hear that it shall go.
COMPILES = "trap '' TERM; while :; do sleep 0.2; done"


def server(strategy: dict) -> dict:
    """One replica with one device each, that may take five minutes to go."""
    ready = {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1}
    thing = Sleeper(
        name="owner",
        nodes=(NODE,),
        script=SERVES,
        container={"resources": {"limits": {"nvidia.com/gpu": "1"}}, "readinessProbe": ready},
        spec={"terminationGracePeriodSeconds": 300},
    ).deployment()
    thing["spec"]["strategy"] = strategy
    return thing


def surge() -> dict:
    return {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def recreate() -> dict:
    return {"type": "Recreate"}


@contextmanager
def devices(cluster: Cluster, kubectl: Kubectl, count: int) -> Iterator[None]:
    try:
        cluster.verb("fake-gpus", NODE, str(count))
        yield
    finally:
        kubectl.delete("deployment", "owner", "--wait=false")
        for pod in kubectl.list("pods"):
            kubectl.kill_pod(pods.name(pod))
        wait_for("no device is held", lambda: not kubectl.list("pods"), 60, kubectl)
        cluster.verb("fake-gpus", NODE, "0")


def roll(kubectl: Kubectl, cluster: Cluster) -> None:
    """Another image, so that a build is due; until kubectl says that it is out."""
    next_image = cluster.another_tag("localhost/busybox:1", "next")
    kubectl.run("set", "image", "deployment/owner", f"server={next_image}")
    kubectl.run("rollout", "status", "deployment/owner", "--timeout=60s", seconds=70)


def never_ends() -> dict:
    """A Job whose pod keeps what it has for as long as anybody lets it."""
    return {"builder": "Job", "overrides": {"command": ["/bin/sh", "-c", COMPILES]}}


def running(found: list[dict]) -> bool:
    return any(pod["status"]["phase"] == "Running" for pod in found)


BUILDERS = {"FirstPod": lambda: {"builder": "FirstPod"}, "Job": never_ends}


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("strategy,count", [(surge, 2), (recreate, 1)])
def test_rollout_gets_its_devices_from_builders(
    kubectl: Kubectl,
    product: Product,
    cluster: Cluster,
    strategy: Callable[[], dict],
    count: int,
    builder: str,
):
    deployment = server(strategy())
    with devices(cluster, kubectl, count):
        kubectl.apply(
            deployment,
            warmup_for(
                deployment,
                compile=BUILDERS[builder](),
                caches=[CACHE],
                gate={"mode": "Hold", "maxHoldSeconds": 300},
            ),
        )
        warmup = Warmup(kubectl, "owner")
        warmup.wait_injecting()
        pods.wait_ready(kubectl, "owner", 1, 60)
        if builder == "Job" and count > 1:
            # Nobody needs the second device now.
            wait_for("a Job has it", lambda: running(warmup.job_pods()), 60, kubectl)
        with DeviceBook(kubectl) as book:
            roll(kubectl, cluster)
        assert not book.in_the_way(count, expected=1), book.in_the_way(count, expected=1)
        (pod,) = pods.wait_ready(kubectl, "owner", 1, 60)
        assert injected(pod) and pods.restarts(pod) == 0
