#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main job, seen on a real cluster: one pod per GPU type compiles, every other pod starts warm.

Usage: tools/demo/demo.py [SECONDS ALREADY SPENT]     tools/demo/run prepares everything first

Writes build/demo/result.json. Environment: DEMO_REPLICAS (4), DEMO_SIZE (small, large), and with
CLUSTER=current what tools/demo/README.md says.
"""

import json
import os
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import workload  # noqa: E402
from harness import pods  # noqa: E402
from harness.waiting import diagnose, wait_for  # noqa: E402

NAMESPACE = "demo"
NAME = "model"
REPLICAS = int(os.environ.get("DEMO_REPLICAS", "4"))
WARMUP = {
    "apiVersion": "cachewarm.io/v1alpha1",
    "kind": "CacheWarmup",
    "metadata": {"name": NAME},
    "spec": {
        "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
        "compile": {"settleSeconds": 3},
        # Every pod but the builders is to hit, also where starting cold would be sooner done.
        "gate": {"mode": "Hold"},
    },
}
STARTED = time.monotonic() - float(sys.argv[1] if len(sys.argv) > 1 else 0)


def step(text: str) -> None:
    seconds = int(time.monotonic() - STARTED)
    print(f"[{seconds // 60:2d}m{seconds % 60:02d}s] {text}", flush=True)


def warmup(kubectl) -> dict:
    return (kubectl.get("cachewarmup", NAME) or {}).get("status", {})


def condition(kubectl, kind: str) -> str:
    for entry in warmup(kubectl).get("conditions", []):
        if entry["type"] == kind:
            return entry["status"]
    return "Unknown"


def samples(kubectl) -> list[dict]:
    """Every start that cachewarm counted, oldest first."""
    return warmup(kubectl).get("starts", {}).get("recent", [])


def begin(kubectl) -> None:
    """A namespace without anything of an earlier run, so that the first start is really cold."""
    kubectl.run("delete", "namespace", NAMESPACE, "--ignore-not-found", seconds=180)
    kubectl.run("create", "namespace", NAMESPACE)
    wait_for("the ServiceAccount", lambda: kubectl.get("serviceaccount", "default"), 60, kubectl)
    kubectl.apply(workload.deployment(NAME, replicas=0))
    kubectl.apply(WARMUP)


def build(kubectl) -> None:
    """Waits until one pod per GPU type has compiled; reports each as it is counted."""
    reported: set[str] = set()

    def done() -> bool:
        builders = [sample for sample in samples(kubectl) if sample["result"] == "builder"]
        for sample in builders:
            if sample["pod"] not in reported:
                reported.add(sample["pod"])
                step(f"built for {sample['gpuType']} on {sample['node']}: "
                     f"{sample['startSeconds']:.0f} s to Ready, "
                     f"{sample['compileSeconds']:.0f} s of them compiling")
        bundles = warmup(kubectl).get("bundles", [])
        return condition(kubectl, "Warm") == "True" and 0 < len(bundles) <= len(builders)

    wait_for("every GPU type built, every node warm", done, 600, kubectl)


def start_one_more(kubectl, count: int) -> None:
    """One at a time: several starts at once on few cores would measure each other."""
    kubectl.scale("deployment", NAME, count)
    latest = pods.wait_ready(kubectl, NAME, count, 600)[-1]
    name = pods.name(latest)
    sample = wait_for(f"the start of {name} counted", lambda: started(kubectl, name), 120, kubectl)
    step(f"replica {count} of {REPLICAS}: {sample['result']} on {pods.node(latest)}, "
         f"{sample['startSeconds']:.0f} s from container start to Ready")


def started(kubectl, pod: str) -> dict | None:
    return next((sample for sample in samples(kubectl) if sample["pod"] == pod), None)


def rows(kubectl) -> list[dict]:
    """One row a start: what cachewarm counted, beside what the engine logged by itself."""
    classes = {cache["metadata"]["name"]: cache["status"]["node"].get("cpuClass", "")
               for cache in kubectl.list("nodecaches") if "node" in cache.get("status", {})}
    alive = {pods.name(pod): pod for pod in pods.of(kubectl, NAME)}
    table = []
    for sample in samples(kubectl):
        row = {
            "pod": sample["pod"], "node": sample["node"], "gpu_type": sample["gpuType"],
            "cpu_class": classes.get(sample["node"], ""), "result": sample["result"],
            "builder": sample["result"] == "builder", "start_seconds": sample["startSeconds"],
            "compile_seconds": sample.get("compileSeconds", 0),
        }
        # The pod of a builder is already deleted, and its log with it.
        if sample["pod"] in alive:
            row["full_hit"] = pods.start(kubectl, alive[sample["pod"]]).full_hit
        table.append(row)
    return table


def show(table: list[dict]) -> None:
    columns = ("pod", "node", "gpu_type", "start_seconds", "compile_seconds", "result")
    head = ("POD", "NODE", "GPU TYPE", "START S", "COMPILE S", "RESULT")
    cells = [head] + [tuple(text(row[column]) for column in columns) for row in table]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        print("  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip())


def text(value) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def judge(table: list[dict]) -> str:
    """Empty when the promise held: one builder per (GPU type, CPU class), all others a hit."""
    for kind in sorted({(row["gpu_type"], row["cpu_class"]) for row in table}):
        builders = [r for r in table if r["builder"] and (r["gpu_type"], r["cpu_class"]) == kind]
        if len(builders) != 1:
            return f"{len(builders)} builders for {kind[0]} {kind[1]}, expected one"
    wrong = [row["pod"] for row in table
             if not row["builder"] and not (row["result"] == "hit" and row.get("full_hit"))]
    if wrong:
        return f"not a full hit: {', '.join(wrong)}"
    hits = sum(1 for row in table if not row["builder"])
    return "" if hits == REPLICAS else f"{hits} starts counted for {REPLICAS} replicas"


def gain(table: list[dict]) -> str:
    cold = median(row["start_seconds"] for row in table if row["builder"])
    warm = median(row["start_seconds"] for row in table if not row["builder"])
    return f"Cold start {cold:.1f} s, warm start {warm:.1f} s (medians): {cold / warm:.1f}x faster."


def main() -> int:
    step("installing cachewarm (manifests/install.yaml)")
    kubectl = workload.install().within(NAMESPACE)
    step("a Deployment of 0 replicas and its CacheWarmup: one pod per GPU type compiles")
    begin(kubectl)
    build(kubectl)
    for count in range(1, REPLICAS + 1):
        start_one_more(kubectl, count)
    table = rows(kubectl)
    result = {"pods": table, "bundles": warmup(kubectl).get("bundles", [])}
    target = ROOT / "build/demo/result.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n")
    print()
    show(table)
    for kind in ("cachewarmups", "nodecaches"):
        print(f"\n$ kubectl get {kind}")
        print(kubectl.run("get", kind).rstrip())
    problem = judge(table)
    if problem:
        print(f"\ndemo: {problem}\n{diagnose(kubectl)}", file=sys.stderr)
        return 1
    print(f"\n{gain(table)}")
    make = "CLUSTER=current make" if workload.CURRENT else "make"
    print(f"The table as JSON: build/demo/result.json. Look around: {make} demo-shell. "
          f"Remove everything: {make} demo-down.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
