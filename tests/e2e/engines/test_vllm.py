# SPDX-License-Identifier: Apache-2.0
"""A real vLLM with its OpenAI server: the annotation alone makes it start warm."""

import json
import urllib.request

from harness import pods
from harness.engine_server import (
    PORT,
    BuilderLogs,
    engine_server,
    init_seconds,
    wait_log,
    wait_result,
)
from harness.kubectl import Kubectl
from harness.product import H100, Product
from harness.steps import replace
from harness.waiting import wait_for
from harness.warmup import Warmup

SERVER = engine_server("llama", "vllm", nodes=("node-a", "node-c"))  # one per GPU type
# vLLM 0.32 on CPU cannot load its own ahead-of-time artifact and writes it again; Inductor's
# entries below it are used.
REWRITES = "Compiling model again due to a load failure"
TRIES = 3  # other tests may take the processors from one start


def complete(pod: dict) -> int:
    """Asks the server for four tokens; returns how many it made."""
    prompt = {"model": "/tmp/model", "prompt": [1, 5, 7, 9], "max_tokens": 4, "temperature": 0}
    request = urllib.request.Request(
        f"http://{pod['status']['podIP']}:{PORT}/v1/completions",
        json.dumps(prompt).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["usage"]["completion_tokens"]


def warm_start(kubectl: Kubectl, pod: dict) -> float:
    """Checks one later start; returns its "init engine" seconds."""
    name = pods.name(pod)
    assert complete(pod) == 4
    seconds = wait_log(kubectl, pod, init_seconds)
    result = wait_result(kubectl, pod)
    rewrites = REWRITES in kubectl.logs(name)
    assert result == ("partial" if rewrites else "hit"), f"{name}: {result}, rewrites {rewrites}"
    return seconds


def test_annotated_vllm_compiles_once_per_gpu_type_and_starts_in_half_the_time(
    kubectl: Kubectl, product: Product
):
    deployment = SERVER.deployment()
    deployment["metadata"]["annotations"] = {
        "cachewarm.io/warm": "true",
        "cachewarm.io/settle-seconds": "2",
    }
    kubectl.apply(deployment)
    warmup = Warmup(kubectl, SERVER.name)
    wait_for("the warmup is made", warmup.read, 30, kubectl)
    logs = BuilderLogs(warmup)
    bundles = logs.wait_bundles(2, 900)
    assert sorted(each["gpuType"] for each in bundles) == ["cpu", H100]
    assert len(logs.texts) == 2, list(logs.texts)  # no third pod compiled
    colds = [init_seconds(text) for text in logs.texts.values()]
    assert all(colds), logs.texts
    warmup.wait_warm()

    kubectl.scale("deployment", SERVER.name, 2)
    running = pods.wait_ready(kubectl, SERVER.name, 2, 400)
    warms = [warm_start(kubectl, pod) for pod in running]
    while min(warms) * 2 >= min(colds) and len(warms) < 2 + TRIES:
        pod = replace(kubectl, running[-1])
        running = pods.wait_ready(kubectl, SERVER.name, 2, 400)
        (pod,) = (each for each in running if pods.name(each) == pods.name(pod))
        warms.append(warm_start(kubectl, pod))
    print(f"init engine: cold {colds} s, warm {warms} s")
    assert min(warms) * 2 < min(colds), (warms, colds)
    assert len(warmup.bundles) == 2 and len(warmup.builders) == 2
