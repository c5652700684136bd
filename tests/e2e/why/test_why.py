# SPDX-License-Identifier: Apache-2.0
"""Pods that differ from their builder in one planted factor miss, and the event and `cachewarm why`
name that factor; pods that differ in nothing on which an engine keys hit, and nothing is blamed.

cases.json has the pods; the unit tests of operator/factors read them too. The engine is a few lines
of shell that keys its kernel on arguments and variables as vLLM does. Two pods start at once, each
on a node of its own, so that no file event of one is in the start of another.
"""

import copy
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import pods
from harness.cluster import REPOSITORY, Cluster
from harness.compiler import CACHE, IMAGE, compiler
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import until_ready
from harness.waiting import wait_for
from harness.warmup import Warmup, events, start_note, warmup_for

PROGRAM = REPOSITORY / "build" / "release" / "cli" / "cachewarm"
CASES = json.loads((Path(__file__).parent / "cases.json").read_text())
BASE = CASES["base"]
NODES = ("node-a", "node-b")  # of one GPU type and CPU class
PLANTED_NAMED_MIN = 18
# The key of the engine: the hash of its words and variables without those that it ignores.
_KEY = """
words() {
  while [ $# -gt 0 ]; do
    case "$1" in
      --port|--host|--served-model-name|--api-key|--gpu-memory-utilization) shift 2 ;;
      --ssl-*) shift ;;
      *) echo "$1"; shift ;;
    esac
  done
}
others="HOME|HF_HUB_OFFLINE|OMP_NUM_THREADS|XLA_FLAGS|APP_PRECISION|ENGINE_VERSION"
keyed="^($others|VLLM_[A-Z0-9_]*|TORCH[A-Z0-9_]*)="
ignored="^VLLM_(HOST_IP|PORT|LOGGING_LEVEL)="
# A start script sets a variable, which is in no spec.
case "$(busybox hostname)" in start-script*) export VLLM_USE_V1=0 ;; *) export VLLM_USE_V1=1 ;; esac
export KERNEL_KEY=$({
  busybox env | busybox grep -E "$keyed" | busybox grep -vE "$ignored" | busybox sort
  words "$@"
} | busybox sha256sum | busybox head -c 12)
# vLLM writes the parts of its key once, beside the entries.
parts="${KERNELS_DIR%/*}/vllm/torch_compile_cache/$KERNEL_KEY/rank_0_0/backbone"
if [ -n "$KERNELS_DIR" ] && [ ! -e "$parts/cache_key_factors.json" ]; then
  busybox mkdir -p "$parts"
  printf '{"env": {"VLLM_USE_V1": "%s"}, "code_hash": "same"}' "$VLLM_USE_V1" \\
    >"$parts/cache_key_factors.json"
fi
[ -z "$ENGINE_READS_FIRST" ] || busybox cat "$KERNELS_DIR"/*.cubin >/dev/null
"""


def words_of(case: dict) -> list[str]:
    words = list(BASE["args"])
    for flag, value in case.get("replace", {}).items():
        words[words.index(flag) + 1] = value
    for position, value in case.get("position", {}).items():
        words[int(position)] = value
    return words + case.get("append", [])


def variables_of(case: dict) -> list[dict]:
    merged = {**BASE["env"], **case.get("env", {})}
    out = [
        {"name": name, "value": value} if isinstance(value, str)
        else {"name": name, "valueFrom": value}
        for name, value in merged.items()
        if value is not None
    ]  # fmt: skip
    return out[::-1] if case.get("reverse") else out


def engine() -> Sleeper:
    server = compiler("engine", NODES, seconds=1)
    server.script = _KEY + server.script
    server.container = container_of({}, server.container)
    return server


def container_of(case: dict, settings: dict) -> dict:
    script = _KEY + compiler("engine", NODES, seconds=1).script
    words = words_of(case)
    split = case.get("command_words", 0)
    return {
        **settings,
        "image": case.get("image", BASE["image"]),
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", script, *words[:split]],
        "args": words[split:],
        "env": variables_of(case),
        **({"resources": case["resources"]} if "resources" in case else {}),
    }


def pod_of(case: dict, node: str) -> dict:
    server = engine()
    pod = server.pod(case["name"])
    pod["metadata"]["labels"].update(case.get("labels", {}))
    (container,) = pod["spec"]["containers"]
    pod["spec"]["containers"] = [container_of(case, copy.deepcopy(container))]
    pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return pod


class Why:
    """`cachewarm why`, as an administrator of the cluster runs it."""

    def __init__(self, cluster: Cluster, kubectl: Kubectl):
        self._words = [f"--kubeconfig={cluster.state / 'admin.kubeconfig'}", "--namespace"]
        self._words.append(kubectl.namespace)

    def __call__(self, subject: str) -> dict:
        done = subprocess.run(
            [str(PROGRAM), "why", subject, "-o", "json", *self._words],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def has_salt(installation: Product) -> bool:
    secret = installation.kubectl.get("secret", "cachewarm-engine-salt")
    return bool((secret or {}).get("data", {}).get("salt"))


@pytest.fixture(scope="module")
def why(cluster: Cluster, shared: Kubectl, installation: Product) -> Why:
    """A warmup whose bundle a Job built from the base. It is paused then, so that no miss makes
    another pod the builder."""
    cluster.another_tag(IMAGE, "next")
    deployment = engine().deployment()
    spec = {"caches": [CACHE], "gate": {"mode": "Never"}, "compile": {"builder": "Job"}}
    shared.apply(deployment, warmup_for(deployment, paused=True, **spec))
    warmup = Warmup(shared, "engine")
    # kubelet shows a Secret that is filled later only after a minute or more.
    wait_for("the salt is made", lambda: has_salt(installation), 60, shared)
    installation.restart("agent")
    shared.patch("cachewarmup", "engine", {"spec": {"paused": False}})
    warmup.wait_injecting()
    warmup.wait_warm()
    wait_for("the Job is gone", lambda: not warmup.jobs() and not warmup.job_pods(), 60, shared)
    shared.patch("cachewarmup", "engine", {"spec": {"paused": True}})
    warmup.wait_condition("Ready", "True", "Paused")
    (bundle,) = warmup.bundles
    assert bundle["factors"], bundle
    return Why(cluster, shared)


def start(kubectl: Kubectl, case: dict, node: str) -> dict:
    """Starts the pod of a case and deletes it; returns its annotation."""
    pod = pod_of(case, node)
    kubectl.apply(pod)
    name = pods.name(until_ready(kubectl, pod))
    return wait_for(
        f"{name} is counted", lambda: start_note(kubectl.get("pod", name)), 120, kubectl
    )


def run_in_pairs(kubectl: Kubectl, cases: list[dict], check) -> list[str]:
    """Starts the cases, one after the other on each node; returns what `check` complains about."""

    def on(index: int) -> list[str]:
        complaints = []
        for case in cases[index :: len(NODES)]:
            note = start(kubectl, case, NODES[index])
            complaint = check(case, note)
            complaints += [f"{case['name']}: {complaint}"] if complaint else []
            kubectl.kill_pod(case["name"])
        return complaints

    with ThreadPoolExecutor(len(NODES)) as pool:
        return sum(pool.map(on, range(len(NODES))), [])


def words_about(factor: str) -> str:
    """The beginning of a sentence about this factor, or a part of it."""
    kind, _, name = factor.partition("/")
    if kind == "args":
        return f"word {name} of command" if name.isdigit() else f"argument {name} "
    return f"environment variable {name}" if kind == "env" else factor


def start_notes(kubectl: Kubectl, pod: str) -> list[str]:
    """The texts of its events about its start. A start that used a part of the cache is warm."""
    reasons = ("StartedWarm", "StartedCold", "CacheMissed")
    return [each["note"] for each in events(kubectl, pod) if each.get("reason") in reasons]


class TestWhy:
    def test_planted_cause_is_named(self, shared: Kubectl, product: Product, why: Why):
        def check(case: dict, note: dict) -> str:
            shown = why(f"pod/{case['name']}")
            if note["result"] != case["result"] or shown["result"] != case["result"]:
                return f"{note['result']} instead of {case['result']}"
            first = shown["explanation"].partition("Other differences:")[0]
            if words_about(case["factor"]) not in first:
                return shown["explanation"]
            noted = wait_for("its event", lambda: start_notes(shared, case["name"]), 30, shared)
            return "" if words_about(case["factor"]) in noted[0] else noted[0]

        planted = CASES["planted"]
        complaints = run_in_pairs(shared, planted, check)
        print(f"named {len(planted) - len(complaints)} of {len(planted)} planted causes")
        # 18 of 20, and the same share of any number of cases.
        allowed = len(planted) - len(planted) * PLANTED_NAMED_MIN / 20
        assert len(complaints) <= allowed, "\n".join(complaints)

    def test_part_of_the_engines_key_is_named(self, shared: Kubectl, product: Product, why: Why):
        """The pods have equal specs: only the engine's own list of the parts of its key differs."""

        def check(case: dict, note: dict) -> str:
            shown = why(f"pod/{case['name']}")
            named = f"vLLM's key factor {case['factor']} differs" in shown["explanation"]
            return "" if note["result"] == case["result"] and named else str((note, shown))

        complaints = run_in_pairs(shared, CASES["engine_factors"], check)
        assert not complaints, "\n".join(complaints)

    def test_healthy_start_has_no_cause(self, shared: Kubectl, product: Product, why: Why):
        def check(case: dict, note: dict) -> str:
            shown = why(f"pod/{case['name']}")
            if note["result"] != "hit" or "cause" in note:
                return str(note)
            noted = wait_for("its event", lambda: start_notes(shared, case["name"]), 30, shared)
            said = [*noted, shown["explanation"]]
            return next((each for each in said if "Cause" in each), "")

        complaints = run_in_pairs(shared, CASES["healthy"], check)
        assert not complaints, "\n".join(complaints)

    def test_warmup_explains_its_last_miss(self, shared: Kubectl, product: Product, why: Why):
        recent = Warmup(shared, "engine").status["starts"]["recent"]
        last = next(s for s in reversed(recent) if s["result"] not in ("hit", "builder", "unknown"))
        shown = why("cachewarmup/engine")
        assert shown["pod"] == last["pod"] and last["cause"] in shown["explanation"]

    def test_no_value_is_stored(self, shared: Kubectl, product: Product, why: Why):
        """Neither in the status nor in any event; the pods that had the values are gone."""
        stored = json.dumps([Warmup(shared, "engine").status, events(shared)])
        for value in ("sk-tenant-b", "/data2/qwen", "/models/qwen-instruct", "16384", "hf_secret"):
            assert value not in stored, value
