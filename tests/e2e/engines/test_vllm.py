# SPDX-License-Identifier: Apache-2.0
"""A real vLLM with its OpenAI server: the annotation alone makes it start warm. The operator reads
from its log how long it started and how large its KV cache is."""

import json
import re
import urllib.request

import pytest
from harness import engine_logs, pods
from harness.compiler import CACHE, compiler
from harness.engine_logs import wait_engine
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
from harness.steps import accept, add_pod, replace, until_ready
from harness.waiting import wait_for
from harness.warmup import Warmup

SERVER = engine_server("llama", "vllm", nodes=("node-a", "node-c"))  # one per GPU type
# vLLM 0.32 on CPU cannot load its own ahead-of-time artifact and writes it again; Inductor's
# entries below it are used.
REWRITES = "Compiling model again due to a load failure"
TRIES = 3  # other tests may take the processors from one start
TOKENS = re.compile(r"KV cache size: ([0-9,]+) tokens")
# Lines of vLLM 0.19 on an H100.
LINES = """\
(EngineCore pid=7) INFO 04-05 18:41:33 [default_loader.py:384] Loading weights took 0.99 seconds
(EngineCore pid=7) INFO 04-05 18:41:52 [monitor.py:48] torch.compile took 12.51 s in total
(EngineCore pid=7) INFO 04-05 18:41:53 [kv_cache_utils.py:1314] GPU KV cache size: 188,640 tokens
(EngineCore pid=7) INFO 04-05 18:41:57 [gpu_model_runner.py:5651] Graph capturing finished in 4 secs
(EngineCore pid=7) INFO 04-05 18:41:58 [core.py:273] init engine (profile) took 24.60 seconds
(APIServer pid=1) INFO:     Application startup complete.
(EngineCore pid=7) INFO 04-05 18:41:59 [default_loader.py:384] Loading weights took 99 seconds
"""
ENGINE = {
    "log": "Found",
    "weightsSeconds": 0.99,
    "compileSeconds": 12.51,
    "graphCaptureSeconds": 4,
    "initSeconds": 24.6,
    "kvCacheTokens": 188640,
}


@pytest.fixture(scope="module")
def logs_are_read(installation: Product):
    with engine_logs.reading(installation):
        yield


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
    log = kubectl.logs(name)
    engine = wait_engine(Warmup(kubectl, SERVER.name), pod)
    assert engine["log"] == "Found" and engine["initSeconds"] == seconds, engine
    assert engine["kvCacheTokens"] == int(TOKENS.search(log).group(1).replace(",", "")), engine
    result = wait_result(kubectl, pod)
    rewrites = REWRITES in kubectl.logs(name)
    assert result == ("partial" if rewrites else "hit"), f"{name}: {result}, rewrites {rewrites}"
    return seconds


@pytest.mark.slow
def test_annotated_vllm_compiles_once_per_gpu_type_and_starts_in_half_the_time(
    kubectl: Kubectl, product: Product, logs_are_read
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
    # A start soon after a bundle may have mounted the tree in which the builder still runs.
    wait_for("the builders are gone", lambda: not warmup.job_pods(), 120, kubectl)

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


def test_log_is_read_once_and_only_with_the_right(
    kubectl: Kubectl, product: Product, logs_are_read
):
    server = compiler("logging", ("node-a",), seconds=1)
    server.script = f"cat <<'END'\n{LINES}END\n" + server.script
    warmup = accept(kubectl, server, caches=[CACHE])
    builder = until_ready(kubectl, add_pod(kubectl, server.name))
    assert wait_engine(warmup, builder) == ENGINE
    warmup.wait_warm()
    engine_logs.withdraw_right(product)
    later = until_ready(kubectl, replace(kubectl, builder))
    assert wait_engine(warmup, later) == {"log": "Unreadable"}
    recent = warmup.status["starts"]["recent"]
    assert [start.get("engine") for start in recent] == [ENGINE, {"log": "Unreadable"}], recent
