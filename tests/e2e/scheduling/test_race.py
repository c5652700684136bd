# SPDX-License-Identifier: Apache-2.0
"""Many pods of a cold workload at once, on nodes of two GPU types: one compiles for each type, and
the gate keeps the others from doing the same work."""

import statistics
import time
from dataclasses import replace

import pytest
from harness import pods
from harness.compiler import CACHE, assert_cold, assert_warm, compiler
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import H100, Product
from harness.steps import accept
from harness.waiting import wait_for

SERVER = ModelServer(name="race", replicas=8)
ROUNDS = 3
SLACK = 1.2


def test_two_of_eight_held_replicas_compile_and_six_hit(kubectl: Kubectl, product: Product):
    gate = {"mode": "Hold", "maxHoldSeconds": 900}
    warmup = accept(kubectl, compiler(SERVER.name), gate=gate, caches=[CACHE])
    kubectl.scale("deployment", SERVER.name, SERVER.replicas)
    running = pods.wait_ready(kubectl, SERVER.name, SERVER.replicas, 480)
    assert sorted(b["gpuType"] for b in warmup.bundles) == ["cpu", H100]
    builders = {b["podName"] for b in warmup.builders}
    assert len(builders) == 2 and all(b["attempt"] == 1 for b in warmup.builders)
    for pod in running:
        if pods.name(pod) in builders:
            assert_cold(kubectl, pod)
        else:
            assert_warm(kubectl, pod)
    wait_for(
        "every start is counted",
        lambda: warmup.counts == {"builder": 2, "hit": 6},
        120,
        kubectl,
    )


def run(kubectl: Kubectl, server: ModelServer) -> float:
    """Seconds from scaling the Deployment, which has no pod yet, until its last pod is Ready."""
    began = time.monotonic()
    kubectl.scale("deployment", server.name, server.replicas)
    pods.wait_ready(kubectl, server.name, server.replicas, 480)
    return time.monotonic() - began


def end(kubectl: Kubectl, server: ModelServer) -> None:
    """The next one has the machine to itself."""
    kubectl.delete("deployment", server.name)
    wait_for("its pods are gone", lambda: not pods.of(kubectl, server.name), 60, kubectl)


def without_us(kubectl: Kubectl, number: int) -> float:
    server = replace(SERVER, name=f"plain-{number}")
    kubectl.apply(replace(server, replicas=0).deployment())
    seconds = run(kubectl, server)
    end(kubectl, server)
    return seconds


def in_mode_auto(kubectl: Kubectl, number: int) -> float:
    """Cold: bundles are a warmup's own, and this one is new."""
    server = replace(SERVER, name=f"auto-{number}")
    warmup = accept(kubectl, server, gate={"mode": "Auto"})
    seconds = run(kubectl, server)
    warmup.wait_bundles(2)
    assert sorted(b["gpuType"] for b in warmup.bundles) == ["cpu", H100]
    assert [b["attempt"] for b in warmup.builders] == [1, 1], "one builder each"
    end(kubectl, server)
    kubectl.delete("cachewarmup", server.name)
    return seconds


@pytest.mark.slow
def test_auto_mode_delays_the_last_of_eight_replicas_not_at_all(
    kubectl: Kubectl, product: Product
):
    first = replace(SERVER, name="first", replicas=3, one_per_node=True)
    kubectl.apply(replace(first, replicas=0).deployment())
    run(kubectl, first)  # reads torch from the disk for all that follow
    end(kubectl, first)
    plain, auto = [], []
    for number in range(ROUNDS):
        turns = [(plain, without_us), (auto, in_mode_auto)]
        for times, race in turns if number % 2 == 0 else reversed(turns):
            times.append(race(kubectl, number))
    ratio = statistics.median(auto) / statistics.median(plain)
    print(f"last of {SERVER.replicas} Ready: without us {[round(s, 1) for s in plain]} s, "
          f"in mode Auto {[round(s, 1) for s in auto]} s, medians 1 : {ratio:.2f}")
    assert ratio <= SLACK, (plain, auto)
