# SPDX-License-Identifier: Apache-2.0
"""Many pods of a cold workload at once, on nodes of two GPU types: one compiles for each type, and
the gate keeps the others from doing the same work."""

import pytest
from harness import pods
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import H100, Product
from harness.steps import accept, assert_cold, assert_hit
from harness.waiting import wait_for

SERVER = ModelServer(name="race", replicas=8)


@pytest.mark.slow
def test_of_eight_held_replicas_two_compile_and_six_hit(kubectl: Kubectl, product: Product):
    warmup = accept(kubectl, SERVER, gate={"mode": "Hold", "maxHoldSeconds": 900})
    kubectl.scale("deployment", SERVER.name, SERVER.replicas)
    running = pods.wait_ready(kubectl, SERVER.name, SERVER.replicas, 480)
    assert sorted(b["gpuType"] for b in warmup.bundles) == ["cpu", H100]
    builders = {b["podName"] for b in warmup.builders}
    assert len(builders) == 2 and all(b["attempt"] == 1 for b in warmup.builders)
    for pod in running:
        if pods.name(pod) in builders:
            assert_cold(kubectl, pod)
        else:
            assert_hit(kubectl, pod)
    wait_for(
        "every start is counted",
        lambda: warmup.counts == {"builder": 2, "hit": 6},
        120,
        kubectl,
    )
