# SPDX-License-Identifier: Apache-2.0
"""The proof: what /metrics claims is what the pods' own log lines say."""

from harness import metrics, pods
from harness.cluster import Cluster
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import Product
from harness.starts import Start
from harness.steps import accept, add_pod, assert_cold, assert_hit, replace, until_ready
from harness.waiting import wait_for
from harness.warmup import start_note

WARM_STARTS = 5


def test_metrics_match_one_cold_and_five_warm_starts(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    server = ModelServer(
        name="measured", size="medium", nodes=("node-a", "node-b"), one_per_node=True
    )
    warmup = accept(kubectl, server, gate={"mode": "Never"})
    cluster.verb("registry-throttle", "1000")  # so that the second node does not get it in time
    kubectl.scale("deployment", server.name, 1)
    builder = pods.wait_ready(kubectl, server.name, 1, 400)[0]
    assert_cold(kubectl, builder)
    warmup.wait_bundles(1)
    colds = [assert_cold(kubectl, until_ready(kubectl, add_pod(kubectl, server.name), 400))]
    warmup.wait_counted({"builder": 1, "cold": 1})
    cluster.verb("registry-throttle", "unlimited")
    warmup.wait_warm()

    warms: list[Start] = []
    for number in range(WARM_STARTS):
        pod = replace(kubectl, pods.of(kubectl, server.name)[0])
        warms.append(assert_hit(kubectl, pod))
        warmup.wait_counted({"builder": 1, "cold": 1, "hit": number + 1})
        note = wait_for(
            f"{pods.name(pod)} says how it started",
            lambda name=pods.name(pod): start_note(kubectl.get("pod", name)),
            60,
            kubectl,
        )
        assert note["result"] == "hit" and note["savedSeconds"] > 0

    def scraped() -> list[metrics.Sample]:
        return metrics.parse(product.metrics("operator"))

    mine = {"namespace": kubectl.namespace, "warmup": server.name}
    counted = {"builder": 1.0, "cold": 1.0, "hit": float(WARM_STARTS)}
    name = "cachewarm_pod_starts_total"
    wait_for(
        "the counters have it all",
        lambda: metrics.by_label(scraped(), name, "result", **mine) == counted,
        60,
        kubectl,
    )
    assert metrics.by_label(scraped(), name, "gpu_type", **mine) == {"cpu": sum(counted.values())}
    assert warmup.status["summary"]["hit"] == f"{100 * WARM_STARTS // (WARM_STARTS + 1)}%"

    def total(counter: str) -> float:
        return sum(metrics.by_label(scraped(), counter, "warmup", **mine).values())

    claimed = total("cachewarm_saved_seconds_total") - total("cachewarm_lost_seconds_total")
    # By the first call: the rest of a start depends on the load of the machine, not on the cache.
    saved = sum(colds[0].compile_s - warm.compile_s for warm in warms)
    print(f"first call: cold {colds[0].compile_s} s, warm {[warm.compile_s for warm in warms]} s")
    print(f"saved {saved:.1f} s by the pods' logs, {claimed:.1f} s by /metrics")
    margin = max(0.1 * saved, 2.0 * WARM_STARTS)
    assert saved > 2 * margin, "the model is too small to measure with"
    assert abs(claimed - saved) <= margin, (claimed, saved)
