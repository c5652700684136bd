#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests stage by stage and ends with one line "N passed, N failed".

Usage: tools/run_tests.py [unit | e2e [FOLDER]]     no argument: everything but slow e2e tests
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1].resolve()
CACHE = Path(os.environ.get("CACHEWARM_CACHE", Path.home() / ".cache/cachewarm"))
REGISTRY = CACHE / "debs/current/docker-registry/usr/bin/docker-registry"
E2E_FOLDERS = ["test_cluster", "crds", "main_job", "scheduling", "scale"]
BEGIN = time.monotonic()
TOTAL = {"passed": 0, "failed": 0, "skipped": 0}


def say(text):
    seconds = int(time.monotonic() - BEGIN)
    print(f"[{seconds // 60:3d}m{seconds % 60:02d}s] {text}", flush=True)


def run(title, *command, env=None):
    """One command; its failure counts as one failed test. Returns its exit status."""
    say(title)
    status = subprocess.run(command, cwd=ROOT, env={**os.environ, **(env or {})}).returncode
    if status:
        say(f"{title}: FAILED (exit status {status})")
    return status


def must(title, *command, env=None):
    if run(title, *command, env=env):
        TOTAL["failed"] += 1
        finish()


def finish():
    skipped = f", {TOTAL['skipped']} skipped" if TOTAL["skipped"] else ""
    print(f"{TOTAL['passed']} passed, {TOTAL['failed']} failed{skipped}", flush=True)
    sys.exit(1 if TOTAL["failed"] else 0)


def count_gtest(folder, status):
    """Adds up what the test programs wrote; a program that wrote nothing crashed."""
    failed = 0
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text())
        skipped = sum(1 for suite in report["testsuites"] for test in suite["testsuite"]
                      if test.get("result") == "SKIPPED")
        failed += report["failures"] + report["errors"]
        TOTAL["skipped"] += skipped
        TOTAL["passed"] += (report["tests"] - report["failures"] - report["errors"] - skipped -
                            report["disabled"])
    TOTAL["failed"] += max(failed, 1) if status else 0


def ctest(title, pattern=None, env=None):
    results = ROOT / "build/dev/results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    command = ["ctest", "--test-dir", "build/dev", "--output-on-failure", "-j2"]
    command += ["-R", pattern] if pattern else []
    said = {"GTEST_OUTPUT": f"json:{results}/", "GTEST_BRIEF": "1"}
    status = run(title, *command, env={**said, **(env or {})})
    count_gtest(results, status)


def pytest(title, *arguments, env=None):
    say(title)
    command = [str(CACHE / "test-venv/current/bin/python"), "-m", "pytest", "-q", "-ra",
               *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **(env or {})}, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    last = ""
    for line in process.stdout:
        print(line, end="", flush=True)
        last = line if re.search(r"\d+ (passed|failed|error)", line) else last
    status = process.wait()
    for number, word in re.findall(r"(\d+) (passed|failed|errors?|skipped)", last):
        TOTAL["failed" if word.startswith("error") else word] += int(number)
    if status and not re.search(r"failed|error", last):
        TOTAL["failed"] += 1


def unit():
    must("building the tests (ASan, UBSan)", "tools/stage", "build-dev")
    ctest("unit, golden and contract tests", env={
        "CACHEWARM_REGISTRY_BIN": str(REGISTRY)})
    pytest("chart and manifest tests, tests of the bench", "tests/charts", "tests/bench",
           "tests/mutate")
    pytest("the judge and the witness of the chaos", "tests/e2e/chaos", "-m", "not slow")


def e2e(folder=None, *selection, env=None):
    must("building the programs", "tools/stage", "build-release")
    must("building the images", "tools/stage", "images")
    must("starting the cluster", "tests/cluster/cluster", "up")
    folders = [folder] if folder else E2E_FOLDERS
    pytest(f"e2e: {', '.join(folders)}", *(f"tests/e2e/{name}" for name in folders),
           *selection, env=env)


def everything():
    unit()
    # A change has 90 minutes to land, and lands on a machine that may be slow.
    e2e(None, "-m", "not slow", env={"E2E_PATIENCE": os.environ.get("E2E_PATIENCE", "2")})
    state = os.environ.get("CACHEWARM_CLUSTER") or "/tmp/cachewarm-cluster"
    ctest("contract tests on the real API server", "kube_contract",
          env={"CACHEWARM_TEST_KUBECONFIG": f"{state}/admin.kubeconfig"})
    must("stopping the cluster", "tests/cluster/cluster", "down")


def main():
    arguments = sys.argv[1:]
    if not arguments:
        everything()
    elif arguments == ["unit"]:
        unit()
    elif arguments[0] == "e2e" and len(arguments) <= 2:
        e2e(*arguments[1:])
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    finish()


if __name__ == "__main__":
    main()
