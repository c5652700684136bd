#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main job, seen on a real cluster: one pod per GPU type compiles, every other pod starts warm.

Usage: tools/demo/demo.py [SECONDS ALREADY SPENT]     tools/demo/run prepares everything first

Writes build/demo/result.json. Environment: CLUSTER=current works on the cluster of KUBECONFIG, with
REGISTRY=host/path for the images and the bundles and DEMO_IMAGE for the model server (an image
with python, torch and g++). DEMO_REPLICAS (6), DEMO_SIZE (small, large).
"""

import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import workload  # noqa: E402
from harness import pods  # noqa: E402
from harness.waiting import diagnose, wait_for  # noqa: E402

NAMESPACE = "demo"
NAME = "model"
REPLICAS = int(os.environ.get("DEMO_REPLICAS", "6"))
WARMUP = {
    "apiVersion": "cachewarm.io/v1alpha1",
    "kind": "CacheWarmup",
    "metadata": {"name": NAME},
    "spec": {
        "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
        "compile": {"settleSeconds": 3},
    },
}
STARTED = time.monotonic() - float(sys.argv[1] if len(sys.argv) > 1 else 0)


def step(text: str) -> None:
    seconds = int(time.monotonic() - STARTED)
    print(f"[{seconds // 60:2d}m{seconds % 60:02d}s] {text}", flush=True)


def condition(kubectl, kind: str) -> str:
    warmup = kubectl.get("cachewarmup", NAME) or {}
    for entry in warmup.get("status", {}).get("conditions", []):
        if entry["type"] == kind:
            return entry["status"]
    return "Unknown"


def bundles(kubectl) -> list[dict]:
    return (kubectl.get("cachewarmup", NAME) or {}).get("status", {}).get("bundles", [])


def begin(kubectl) -> None:
    """A namespace without anything of an earlier run, so that the first start is really cold."""
    kubectl.run("delete", "namespace", NAMESPACE, "--ignore-not-found", seconds=180)
    kubectl.run("create", "namespace", NAMESPACE)
    wait_for("the ServiceAccount", lambda: kubectl.get("serviceaccount", "default"), 60, kubectl)
    kubectl.apply(WARMUP)
    kubectl.apply(workload.deployment(NAME, replicas=0))


def start_one_more(kubectl, count: int) -> None:
    """One at a time: several starts at once on few cores would measure each other."""
    kubectl.scale("deployment", NAME, count)
    latest = pods.wait_ready(kubectl, NAME, count, 600)[-1]
    node = pods.node(latest)
    wait_for("the start is counted", lambda: started(kubectl, pods.name(latest)), 120, kubectl)
    sample = started(kubectl, pods.name(latest))
    step(f"pod {count} of {REPLICAS}: {sample['result']:8s} on {node}, "
         f"{sample['startSeconds']:.0f} s from container start to Ready")


def started(kubectl, pod: str) -> dict | None:
    """What cachewarm counted for this pod."""
    warmup = kubectl.get("cachewarmup", NAME) or {}
    recent = warmup.get("status", {}).get("starts", {}).get("recent", [])
    return next((sample for sample in recent if sample["pod"] == pod), None)


def rows(kubectl) -> list[dict]:
    """One row a pod: what cachewarm counted, beside what the engine logged by itself."""
    classes = {cache["metadata"]["name"]: cache["status"]["node"].get("cpuClass", "")
               for cache in kubectl.list("nodecaches") if "node" in cache.get("status", {})}
    table = []
    for pod in pods.of(kubectl, NAME):
        sample = started(kubectl, pods.name(pod))
        line = pods.start(kubectl, pod)
        table.append({
            "pod": pods.name(pod), "node": pods.node(pod), "gpu_type": sample["gpuType"],
            "cpu_class": classes.get(pods.node(pod), ""), "result": sample["result"],
            "builder": sample["result"] == "builder", "start_seconds": sample["startSeconds"],
            "compile_seconds": line.compile_s, "full_hit": line.full_hit,
        })
    return table


def show(table: list[dict]) -> None:
    columns = ("pod", "node", "gpu_type", "start_seconds", "compile_seconds", "result")
    head = ("POD", "NODE", "GPU TYPE", "START S", "COMPILE S", "RESULT")
    cells = [head] + [tuple(str(row[column]) for column in columns) for row in table]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def judge(table: list[dict]) -> str:
    """Empty when the promise held: one builder per (GPU type, CPU class), all others a hit."""
    for kind in {(row["gpu_type"], row["cpu_class"]) for row in table}:
        builders = [r for r in table if r["builder"] and (r["gpu_type"], r["cpu_class"]) == kind]
        if len(builders) != 1:
            return f"{len(builders)} builders for {kind[0]} {kind[1]}, expected one"
    wrong = [row["pod"] for row in table
             if not row["builder"] and not (row["result"] == "hit" and row["full_hit"])]
    return f"not a full hit: {', '.join(wrong)}" if wrong else ""


def main() -> int:
    step("installing cachewarm (manifests/install.yaml)")
    kubectl = workload.install().within(NAMESPACE)
    step("a CacheWarmup and a Deployment without pods")
    begin(kubectl)
    wait_for("Ready", lambda: condition(kubectl, "Ready") == "True", 120, kubectl)
    for count in range(1, REPLICAS + 1):
        start_one_more(kubectl, count)
    wait_for("Warm", lambda: condition(kubectl, "Warm") == "True", 120, kubectl)
    table = rows(kubectl)
    result = {"pods": table, "bundles": bundles(kubectl)}
    target = ROOT / "build/demo/result.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n")
    print()
    show(table)
    for words in (("cachewarmups",), ("nodecaches",)):
        print(f"\n$ kubectl get {' '.join(words)}")
        print(kubectl.run("get", *words).rstrip())
    problem = judge(table)
    if problem:
        print(f"\ndemo: {problem}\n{diagnose(kubectl)}", file=sys.stderr)
        return 1
    print("\nThe table as JSON: build/demo/result.json. Look around: make demo-shell. "
          "Remove everything: make demo-down.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
