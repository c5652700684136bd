# SPDX-License-Identifier: Apache-2.0
"""The Redis remote caches of torch, served by the agents: a pod compiles on one node, and a pod on
another node hits the same entries there, by torch's own counters."""

from harness import pods
from harness.kubectl import Kubectl
from harness.model_server import ModelServer, redis_client_directory
from harness.product import Product
from harness.steps import add_pod, until_ready, warm_up
from harness.waiting import wait_for
from harness.warmup import DIRECTORY, start_note

SERVER = ModelServer(
    name="redis",
    nodes=("node-a", "node-b"),
    one_per_node=True,
    env={"PYTHONPATH": redis_client_directory()},
    shown={"redis-client": redis_client_directory()},
)


def test_torch_hits_entries_that_were_compiled_on_another_node(
    kubectl: Kubectl, product: Product
):
    warmup = warm_up(
        kubectl, SERVER, caches=[{"name": "torchinductor-redis"}], gate={"mode": "Never"}
    )
    (builder,) = pods.of(kubectl, SERVER.name)
    assert pods.start(kubectl, builder).cold

    pod = until_ready(kubectl, add_pod(kubectl, SERVER.name))
    assert pods.node(pod) != pods.node(builder)
    assert warmup.active_on(pods.node(pod)) == {bundle["digest"] for bundle in warmup.bundles}
    start = pods.start(kubectl, pod)
    assert start.fx_hit > 0 and start.fx_miss == 0 and start.aot_hit > 0 and start.right, start
    # Its files are private to the pod, so that only the endpoint can have served the entries. They
    # hold no C++ kernels, which are built again.
    assert not start.dir.startswith(DIRECTORY) and start.new_so > 0, start
    wait_for(
        "the pod's annotation says hit",
        lambda: start_note(kubectl.get("pod", pods.name(pod))).get("result") == "hit",
        60,
        kubectl,
    )
    metrics = product.metrics("agent")
    for cache in ("fx_graph", "autograd"):
        for result in ("hit", "stored"):
            assert f'cachewarm_redis_requests_total{{cache="{cache}",result="{result}"}}' in metrics
