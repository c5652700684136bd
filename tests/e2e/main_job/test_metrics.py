# SPDX-License-Identifier: Apache-2.0
"""The proof: what /metrics claims is what the pods' own log lines say."""

from harness import metrics, pods
from harness.cluster import Cluster
from harness.evidence import NODES, Logged, measure, read_start
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import Product
from harness.waiting import wait_for
from harness.warmup import start_note

WARM_STARTS = 5


def test_metrics_match_one_cold_and_five_warm_starts(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    server = ModelServer(name="measured", size="medium", nodes=NODES, one_per_node=True)

    def read(pod: dict) -> Logged:
        start = read_start(kubectl, pod)
        if start.result == "hit":
            note = wait_for(
                f"{pods.name(pod)} says how it started",
                lambda: start_note(kubectl.get("pod", pods.name(pod))),
                60,
                kubectl,
            )
            assert note["result"] == "hit" and note["savedSeconds"] > 0
        return start

    measured = measure(kubectl, cluster, server, read, WARM_STARTS)
    assert measured.counts == {"builder": 1, "cold": 1, "hit": WARM_STARTS}, measured

    def scraped() -> list[metrics.Sample]:
        return metrics.parse(product.metrics("operator"))

    mine = {"namespace": kubectl.namespace, "warmup": server.name}
    name = "cachewarm_pod_starts_total"
    wait_for(
        "the counters have it all",
        lambda: metrics.by_label(scraped(), name, "result", **mine) == measured.counts,
        60,
        kubectl,
    )
    by_type = metrics.by_label(scraped(), name, "gpu_type", **mine)
    assert by_type == {"cpu": sum(measured.counts.values())}
    assert measured.warmup.status["summary"]["hit"] == f"{100 * WARM_STARTS // (WARM_STARTS + 1)}%"

    def total(counter: str) -> float:
        return sum(metrics.by_label(scraped(), counter, "warmup", **mine).values())

    measured.assert_saved(
        total("cachewarm_saved_seconds_total") - total("cachewarm_lost_seconds_total")
    )
