# SPDX-License-Identifier: Apache-2.0
"""A real JAX and a real Prometheus. JAX writes its entries when their compiles end, so that no span
between two files says how long it compiled."""

import pytest
from harness.cluster import Cluster
from harness.engine_server import counted, engine_server, wait_log
from harness.evidence import NODES, Logged, assert_reported_after_restarts, measure
from harness.kubectl import Kubectl
from harness.product import Product
from harness.prometheus import Monitoring
from harness.steps import until_ready

WARM_STARTS = 9
LAYERS = 24
# One model of the server compiles in few seconds, and times of the API are whole seconds. So the
# program compiles several, one after the other.
SEVERAL = """
import collections, sys
sys.path.insert(0, "/opt/model")
import jax_server, ready_server
def compile_models():
    sums = collections.Counter()
    for jax_server.WIDTH in range(128, 384, 32):
        found = jax_server.compile_model()
        sums.update(hits=found["hits"], misses=found["misses"])
    return {"hits": sums["hits"], "misses": sums["misses"]}
ready_server.serve(compile_models)
"""


@pytest.mark.slow
def test_prometheus_reports_nine_hits_in_ten_starts_of_jax(
    kubectl: Kubectl, product: Product, cluster: Cluster, monitored: Monitoring
):
    def read(pod: dict) -> Logged:
        seen = wait_log(kubectl, until_ready(kubectl, pod, 400), counted)
        full_hit = seen.hits and not seen.misses
        result = "hit" if full_hit else "partial" if seen.hits else "cold"
        return Logged(result, seen.seconds)

    server = engine_server("jax", "jax", NODES)
    python = server.container["command"][0]
    server.container["command"] = [python, "-c", SEVERAL]
    server.container["env"].append({"name": "MODEL_LAYERS", "value": str(LAYERS)})
    measured = measure(kubectl, cluster, server, read, WARM_STARTS)
    assert measured.share("hit") == 0.9, measured
    assert_reported_after_restarts(monitored, product, measured)
