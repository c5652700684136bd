# SPDX-License-Identifier: Apache-2.0
"""Two nodes of one GPU type whose CPUs differ: native code of the one is never shown to the other.

node-b plays the lesser CPU twice: for the model server, by a file that caps the instruction set
before torch is imported, and for its agent, by its facts file.
"""

from pathlib import Path

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import Product
from harness.steps import accept, assert_cold, assert_hit, replace
from harness.waiting import wait_for

LESSER = "x86-64-v3/amd-23-49/0123abcd"
SERVER = ModelServer(name="classes", nodes=("node-a", "node-b"), one_per_node=True)


@pytest.fixture
def capability() -> str:
    """An instruction set below the machine's, with vectors of another width."""
    flags = Path("/proc/cpuinfo").read_text().split()
    assert "avx2" in flags, "this machine has no AVX2: the class cannot be played"
    return "avx2" if "avx512f" in flags else "default"


def on(kubectl: Kubectl, node: str) -> dict:
    return next(pod for pod in pods.of(kubectl, SERVER.name) if pods.node(pod) == node)


def test_each_cpu_class_has_its_own_bundle(
    kubectl: Kubectl, product: Product, cluster: Cluster, capability: str
):
    try:
        product.play_cpu("node-b", capability)
        product.declare("node-b", {"cpuClass": LESSER})
        warmup = accept(kubectl, SERVER, gate={"mode": "Hold", "maxHoldSeconds": 900})
        kubectl.scale("deployment", SERVER.name, 2)
        for pod in pods.wait_ready(kubectl, SERVER.name, 2, 300):
            assert_cold(kubectl, pod)
        warmup.wait_warm()
        classes = {bundle["cpuClass"]: bundle for bundle in warmup.bundles}
        assert len(classes) == 2 and LESSER in classes
        assert {bundle["gpuType"] for bundle in classes.values()} == {"cpu"}
        assert len({bundle["digest"] for bundle in classes.values()}) == 2
        assert warmup.active_on("node-b") == {classes.pop(LESSER)["digest"]}
        assert warmup.active_on("node-a") == {bundle["digest"] for bundle in classes.values()}
        for node in SERVER.nodes:
            start = assert_hit(kubectl, replace(kubectl, on(kubectl, node)))
            assert start.isa == (capability if node == "node-b" else "default")
    finally:
        product.play_cpu("node-b", "")
        product.declare("node-b", {})


def test_one_bundle_for_two_cpu_classes_fails(
    kubectl: Kubectl, product: Product, cluster: Cluster, capability: str
):
    """The danger is real: the same pods where node-b's facts hide that its CPU differs."""
    try:
        product.play_cpu("node-b", capability)
        warmup = accept(kubectl, SERVER, gate={"mode": "Hold", "maxHoldSeconds": 900})
        kubectl.run("cordon", "node-b")
        kubectl.scale("deployment", SERVER.name, 1)
        pods.wait_ready(kubectl, SERVER.name, 1, 240)
        warmup.wait_bundles(1)
        wait_for("node-b has it", lambda: warmup.active_on("node-b"), 120, kubectl)
        kubectl.run("uncordon", "node-b")
        kubectl.scale("deployment", SERVER.name, 2)

        def broken() -> bool:
            found = [p for p in pods.of(kubectl, SERVER.name) if pods.node(p) == "node-b"]
            if found and pods.restarts(found[0]) > 0:
                return True
            return bool(found) and pods.ready(found[0]) and not pods.start(kubectl, found[0]).right

        wait_for("the pod on node-b crashes or computes wrong numbers", broken, 180, kubectl)
    finally:
        kubectl.run("uncordon", "node-b")
        product.play_cpu("node-b", "")
