# SPDX-License-Identifier: Apache-2.0
"""A real vLLM and a real Prometheus. A start is hit, partial or cold by vLLM's own log."""

from datetime import datetime

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.engine_server import engine_server
from harness.evidence import NODES, Logged, assert_reported_after_restarts, measure
from harness.kubectl import Kubectl
from harness.product import Product
from harness.prometheus import Monitoring
from harness.sleeper import Sleeper
from harness.steps import until_ready
from harness.waiting import wait_for

WARM_STARTS = 9
# Its first line gives the start of the process a time in the log.
ANNOUNCE = (
    "import os, sys; print('START', flush=True);"
    " os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
SERVES = "Application startup complete"
COMPILES = "saved AOT compiled function"
# vLLM 0.32 on CPU cannot load its own ahead-of-time artifact and writes it again; Inductor's
# entries below it are used.
REWRITES = "Compiling model again due to a load failure"


def announcing() -> Sleeper:
    server = engine_server("vllm", "vllm", NODES)
    python, *arguments = server.container["command"]
    server.container["command"] = [python, "-c", ANNOUNCE, *arguments]
    return server


def time_of(log: str, words: str) -> datetime | None:
    """When the first line with these words was written."""
    line = next((line for line in log.splitlines() if words in line), None)
    return datetime.fromisoformat(line.split()[0]) if line else None


def read_log(kubectl: Kubectl, pod: dict) -> Logged:
    name = pods.name(until_ready(kubectl, pod, 600))

    def complete() -> str:
        text = kubectl.logs(name, "--timestamps")
        return text if SERVES in text else ""

    log = wait_for(f"{name} logs that it serves", complete, 60, kubectl)
    if REWRITES in log:
        result = "partial"
    else:
        result = "cold" if COMPILES in log else "hit"
    began, ready = time_of(log, " START"), time_of(log, SERVES)
    assert began and ready, log[:2000]
    return Logged(result, (ready - began).total_seconds())


@pytest.mark.slow
def test_prometheus_reports_the_starts_of_vllm_as_its_log_does(
    kubectl: Kubectl, product: Product, cluster: Cluster, monitored: Monitoring
):
    measured = measure(
        kubectl, cluster, announcing(), lambda pod: read_log(kubectl, pod), WARM_STARTS
    )
    assert_reported_after_restarts(monitored, product, measured)
