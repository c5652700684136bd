# SPDX-License-Identifier: Apache-2.0
"""PodDisruptionBudgets with held pods and builders about: an eviction is allowed when it would be
allowed without us, and a drain goes through as soon as the held pod serves."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from harness import pods
from harness.cluster import Cluster
from harness.kubectl import Kubectl, KubectlError
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import add_pod
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, released, warmup_for

NODES = ("node-a", "node-b")
FOREIGN_GATE = "example.com/wait"
CACHE = {"name": "mine", "env": "MY_CACHE", "path": "mine"}
COMPILES = """
if [ -f "$MY_CACHE/kernel" ]; then echo hit; cat "$MY_CACHE/kernel"
else echo miss; echo compiled > "$MY_CACHE/kernel"; fi
touch /tmp/ready
exec sleep 3600
"""


def compiling(name: str) -> Sleeper:
    ready = {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1}
    container = {"readinessProbe": ready}
    return Sleeper(name=name, replicas=0, nodes=NODES, script=COMPILES, container=container)


def budget(name: str, selector: dict, least: int) -> dict:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": least, "selector": {"matchLabels": selector}},
    }


def counts(kubectl: Kubectl, name: str) -> tuple[int, ...]:
    status = kubectl.get("pdb", name)["status"]
    fields = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(status.get(field, 0) for field in fields)


def evict(kubectl: Kubectl, name: str) -> str:
    """ "" when it was allowed, else the API server's words."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": kubectl.namespace},
    }
    path = f"/api/v1/namespaces/{kubectl.namespace}/pods/{name}/eviction"
    try:
        kubectl.run("create", "--raw", path, "-f", "-", text_in=json.dumps(eviction))
    except KubectlError as refused:
        return str(refused)
    return ""


def twin(kubectl: Kubectl) -> str:
    """As many pods as the warmed workload has, in the same states, without cachewarm: one serves,
    one waits. Returns the name of the one that serves."""
    plain = Sleeper(name="twin", replicas=0, nodes=NODES)
    waits = plain.pod("twin-waits")
    waits["spec"]["schedulingGates"] = [{"name": FOREIGN_GATE}]
    kubectl.apply(waits, plain.pod("twin-serves"), budget("twin", {"app": "twin"}, 1))
    wait_for(
        "the twin has one that serves and one that waits",
        lambda: counts(kubectl, "twin") == (2, 1, 1, 0),
        60,
        kubectl,
    )
    return "twin-serves"


@contextmanager
def drain(kubectl: Kubectl, node: str, app: str) -> Iterator[subprocess.Popen]:
    """From the first moment on the node takes no more pods, until the context ends."""
    words = ("drain", node, f"--pod-selector=app={app}", "--timeout=120s", "--ignore-daemonsets")
    process = kubectl.start(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def cordoned() -> bool:
        return kubectl.get("node", node)["spec"].get("unschedulable", False)

    try:
        wait_for(f"{node} is cordoned", cordoned, 30, kubectl)
        yield process
    finally:
        process.kill()
        kubectl.run("uncordon", node)


def held_of(kubectl: Kubectl, app: str) -> dict | None:
    return next((pod for pod in pods.of(kubectl, app) if gated(pod)), None)


@contextmanager
def stalled_registry(cluster: Cluster) -> Iterator[None]:
    """Nothing is published, and a pod is held for as long as the test wants to look around."""
    try:
        cluster.verb("registry-throttle", "0")
        yield
    finally:
        cluster.verb("registry-throttle", "unlimited")


def assert_evicted_as_unmanaged(kubectl: Kubectl, serves: dict, held: dict) -> None:
    name = twin(kubectl)
    wait_for(
        "the budget counts as for an unmanaged workload",
        lambda: counts(kubectl, "drained") == counts(kubectl, "twin"),
        30,
        kubectl,
    )
    for each in (name, pods.name(serves)):
        assert "disruption budget" in evict(kubectl, each)
    assert evict(kubectl, pods.name(held)) == "", "one that is held serves nobody"


def test_drain_waits_until_the_held_pod_serves(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    server = compiling("drained")
    desired = warmup_for(
        server.deployment(),
        caches=[CACHE],
        gate={"mode": "Hold", "maxHoldSeconds": 300},
        compile={"builder": "FirstPod"},
    )
    kubectl.apply(server.deployment(), desired, budget("drained", {"app": "drained"}, 1))
    Warmup(kubectl, "drained").wait_injecting()
    with stalled_registry(cluster):
        kubectl.scale("deployment", "drained", 1)
        (serves,) = pods.wait_ready(kubectl, "drained", 1, 60)
        held = add_pod(kubectl, "drained")
        assert gated(held)
        assert_evicted_as_unmanaged(kubectl, serves, held)
        held = wait_for("another is held", lambda: held_of(kubectl, "drained"), 30, kubectl)
        node = pods.node(serves)
        with drain(kubectl, node, "drained") as draining:
            cluster.verb("registry-throttle", "unlimited")
            output, _ = draining.communicate(timeout=150)
            assert draining.returncode == 0, output
            assert released(kubectl.get("pod", pods.name(held))) == "ReleasedWarm"
            assert "hit" in kubectl.logs(pods.name(held))
            both = pods.wait_ready(kubectl, "drained", 2, 60)
            assert pods.name(serves) not in map(pods.name, both)
            assert node not in map(pods.node, both)


def test_builder_counts_in_no_disruption_budget(kubectl: Kubectl, product: Product):
    """Also if the budget selects by a label that the builder's pod keeps."""
    server = Sleeper(name="counted", replicas=2, nodes=NODES)
    deployment = server.deployment()
    deployment["spec"]["template"]["metadata"]["labels"]["tier"] = "inference"
    kubectl.apply(
        budget("by-app", {"app": "counted"}, 1),
        budget("by-tier", {"tier": "inference"}, 1),
        deployment,
        warmup_for(deployment, compile={"builder": "Job"}),
    )
    warmup = Warmup(kubectl, "counted")

    def running() -> bool:
        return any(pod["status"]["phase"] == "Running" for pod in warmup.job_pods())

    wait_for("a builder runs", running, 60, kubectl)
    first = pods.wait_ready(kubectl, "counted", 2, 60)[0]
    # For a pod with two budgets the controller updates only one of them; a changed budget recounts.
    kubectl.run("annotate", "pdb", "--all", "looked-at=again")
    for name in ("by-app", "by-tier"):
        wait_for(
            f"{name} counts the two",
            lambda n=name: counts(kubectl, n) == (2, 1, 2, 1),
            30,
            kubectl,
        )
    assert running()
    kubectl.delete("pdb", "by-tier")  # of a pod with two, the API server evicts nothing
    assert evict(kubectl, pods.name(first)) == ""
    pods.wait_ready(kubectl, "counted", 2, 60)
