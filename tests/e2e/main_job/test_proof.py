# SPDX-License-Identifier: Apache-2.0
"""A builder Job's bundle is given to other nodes only after an engine that must not compile has
started with it. A bundle that the engine refuses reaches no other node, and pods start cold."""

from harness import pods
from harness.compiler import CACHE, assert_cold, assert_hit, compiler
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import add_pod
from harness.waiting import wait_for
from harness.warmup import Warmup, injected, wait_event, warmup_for

NODES = ("node-a", "node-b")  # of one GPU type and CPU class
PROOF = {"builder": "Job", "proof": "Engine"}
CACHES = [CACHE, {"name": "vllm"}]
POD_NAME = {"name": "KERNEL_KEY", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def accepted(kubectl: Kubectl, server: Sleeper) -> Warmup:
    deployment = server.deployment()
    kubectl.apply(deployment, warmup_for(deployment, caches=CACHES, compile=PROOF))
    return Warmup(kubectl, server.name)


def entry(kubectl: Kubectl, warmup: Warmup, node: str) -> dict:
    """The entry of this warmup in the spec of the NodeCache."""
    cache = kubectl.get("nodecache", node) or {}
    entries = cache.get("spec", {}).get("warmups", [])
    uid = warmup.uid
    return next((each for each in entries if each["uid"] == uid), {})


def test_bundle_reaches_the_other_node_after_its_proof(kubectl: Kubectl, product: Product):
    warmup = accepted(kubectl, compiler("proven", NODES))
    warmup.wait_warm()
    (bundle,) = warmup.bundles
    (builder,) = warmup.builders
    assert (builder["state"], builder["attempt"]) == ("Captured", 1)
    started = wait_event(kubectl, "proven", "ProofStarted")
    assert f"{builder['job']}-proof on node {builder['node']}" in started["note"], started
    assert "VLLM_FORCE_AOT_LOAD=1" in started["note"], started

    (other,) = set(NODES) - {builder["node"]}
    own, later = (entry(kubectl, warmup, node) for node in (builder["node"], other))
    # Times in the same format, in UTC: their order is that of the texts.
    assert own["fetchGrantedTime"] < bundle["publishedTime"] <= later["fetchGrantedTime"]
    wait_for("the Jobs are gone", lambda: not warmup.jobs() and not warmup.job_pods(), 60, kubectl)
    for _ in NODES:
        assert_hit(kubectl, add_pod(kubectl, "proven"))
    warmup.wait_counted({"builder": 1, "hit": len(NODES)})


def test_refused_bundle_stays_on_its_node_and_pods_start_cold(kubectl: Kubectl, product: Product):
    warmup = accepted(kubectl, compiler("refused", NODES, env=[POD_NAME]))
    degraded = warmup.wait_condition("Degraded", "True", "BundleSuspended", 240)
    assert "is missing" in degraded["message"], degraded
    failed = wait_event(kubectl, "refused", "ProofFailed")
    assert failed["type"] == "Warning"
    assert "ended before it was ready: exit 1" in failed["note"], failed
    assert not warmup.bundles
    (builder,) = warmup.builders
    (other,) = set(NODES) - {builder["node"]}
    assert "fetchGrantedTime" in entry(kubectl, warmup, builder["node"])
    assert "fetchGrantedTime" not in entry(kubectl, warmup, other)

    pod = add_pod(kubectl, "refused")
    assert_cold(kubectl, pod)
    assert injected(kubectl.get("pod", pods.name(pod)))

    # The second build ends in the same way, and there is no third.
    def ended() -> list[dict]:
        suspended = warmup.status.get("suspendedBundles", [])
        return suspended if len(suspended) == 2 else []

    wait_for("the second bundle is refused", ended, 240, kubectl)
    assert "no other bundle is built" in warmup.condition("Degraded")["message"]
    assert not warmup.bundles
    wait_for("the Jobs are gone", lambda: not warmup.jobs(), 60, kubectl)
    (builder,) = warmup.builders
    assert (builder["reason"], builder["attempt"]) == ("ProofFailed", 2)
    for node in NODES:
        assert not entry(kubectl, warmup, node).get("bundles"), node
        wait_for(f"{node} drops it", lambda node=node: not warmup.active_on(node), 60, kubectl)
    assert warmup.condition("Ready")["status"] == "True"
