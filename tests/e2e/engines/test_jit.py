# SPDX-License-Identifier: Apache-2.0
"""JAX and Numba: the annotation alone makes every later pod a full hit, by their own counters."""

import pytest
from harness import pods
from harness.engine_server import BuilderLogs, counted, engine_server, wait_log, wait_result
from harness.kubectl import Kubectl
from harness.product import H100, Product
from harness.waiting import wait_for
from harness.warmup import Warmup

# node-a and node-b share a GPU type: one of them never compiles and gets the bundle.
NODES = ("node-a", "node-b", "node-c")


@pytest.mark.parametrize("engine", ["jax", "numba"])
def test_annotated_engine_compiles_once_per_gpu_type_and_hits_on_every_node(
    kubectl: Kubectl, product: Product, engine: str
):
    server = engine_server(engine, engine, NODES)
    deployment = server.deployment()
    deployment["metadata"]["annotations"] = {
        "cachewarm.io/warm": "true",
        "cachewarm.io/settle-seconds": "2",
    }
    kubectl.apply(deployment)
    warmup = Warmup(kubectl, engine)
    wait_for("the warmup is made", warmup.read, 30, kubectl)
    logs = BuilderLogs(warmup)
    bundles = logs.wait_bundles(2, 300)
    assert sorted(each["gpuType"] for each in bundles) == ["cpu", H100]
    colds = [counted(text) for text in logs.texts.values()]
    assert len(colds) == 2 and all(colds), logs.texts
    assert all(each.hits == 0 and each.misses > 0 for each in colds), colds
    warmup.wait_warm()

    kubectl.scale("deployment", engine, len(NODES))
    running = pods.wait_ready(kubectl, engine, len(NODES), 300)
    assert {pods.node(pod) for pod in running} == set(NODES)
    for pod in running:
        seen = wait_log(kubectl, pod, counted)
        where = f"{pods.name(pod)} on {pods.node(pod)}"
        assert seen.misses == 0 and seen.hits == colds[0].misses, f"{where}: {seen}"
        assert wait_result(kubectl, pod) == "hit", where
    warmup.wait_counted({"builder": 2, "hit": len(NODES)})
