#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests stage by stage. Ends with a table of the stages and one line "N passed, N failed".

Usage: tools/run_tests.py [unit | e2e [FOLDER]]     no argument: everything that a change must pass

A test that is skipped fails the run, unless tests/skips.txt names it with a reason.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1].resolve()
CACHE = Path(os.environ.get("CACHEWARM_CACHE", Path.home() / ".cache/cachewarm"))
CLUSTER = Path(os.environ.get("CACHEWARM_CLUSTER") or "/tmp/cachewarm-cluster")
REGISTRY = CACHE / "debs/current/docker-registry/usr/bin/docker-registry"
KUBECTL = CACHE / "kubebox/current/kubectl"
PYTHON = CACHE / "test-venv/current/bin/python"
BEGIN = time.monotonic()


class Stages:
    """The earlier stages (set-up and checks, recorded by tools/timed) and those of this run."""

    def __init__(self):
        self.rows = []  # (title, seconds, passed, failed)
        file = Path(os.environ.get("CACHEWARM_STAGES", "/nonexistent"))
        for line in file.read_text().splitlines() if file.is_file() else []:
            title, seconds, status = line.split("\t")
            self.rows.append((title, int(seconds), 0, 1 if status != "0" else 0))
        self.skipped = []

    def add(self, title, seconds, passed=0, failed=0):
        self.rows.append((title, int(seconds), passed, failed))

    def finish(self):
        allowed = read_skips((ROOT / "tests/skips.txt").read_text())
        refused = [n for n in self.skipped if not any(fnmatchcase(n, g) for g in allowed)]
        for name in refused:
            print(f"skipped, and not listed in tests/skips.txt: {name}")
        print(f"\n{'STAGE':58} {'TIME':>7} {'PASSED':>7} {'FAILED':>7}")
        for title, seconds, passed, failed in self.rows:
            print(f"{title:58} {clock(seconds):>7} {passed or '':>7} {failed or '':>7}")
        print(f"{'all of it':58} {clock(sum(row[1] for row in self.rows)):>7}\n")
        passed = sum(row[2] for row in self.rows)
        failed = sum(row[3] for row in self.rows) + len(refused)
        listed = len(self.skipped) - len(refused)
        print(f"{passed} passed, {failed} failed" + (f", {listed} skipped" if listed else ""),
              flush=True)
        sys.exit(1 if failed else 0)


def read_skips(text):
    """The names, with * for any text, that tests/skips.txt allows: "NAME because REASON"."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for line in lines:
        if not line.partition(" because ")[2].strip():
            raise ValueError(f"tests/skips.txt: no reason in: {line}")
    return [line.partition(" because ")[0].strip() for line in lines]


def clock(seconds):
    return f"{int(seconds) // 60}m{int(seconds) % 60:02d}"


def announce(text):
    print(f"[{clock(time.monotonic() - BEGIN):>6}] {text}", flush=True)


def timed(title, *command, env=None):
    """Runs one command. Returns its exit status and how many seconds it took."""
    announce(title)
    begin = time.monotonic()
    status = subprocess.run(command, cwd=ROOT, env={**os.environ, **(env or {})}).returncode
    if status:
        announce(f"{title}: FAILED (exit status {status})")
    return status, time.monotonic() - begin


def must(stages, title, *command, env=None):
    """A step without tests of its own: its failure counts as one and ends the run."""
    status, seconds = timed(title, *command, env=env)
    stages.add(title, seconds, 0, 1 if status else 0)
    if status:
        stages.finish()


def count_gtest(stages, folder):
    """Returns (passed, failed) of the reports that cmake/room.cmake has the test programs write."""
    passed = failed = 0
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text())
        skipped = [f"{suite['name']}.{test['name']}" for suite in report["testsuites"]
                   for test in suite["testsuite"] if test.get("result") == "SKIPPED"]
        stages.skipped += skipped
        failed += report["failures"] + report["errors"]
        passed += (report["tests"] - report["failures"] - report["errors"] - len(skipped) -
                   report["disabled"])
    return passed, failed


def ctest(stages, title, pattern=None, env=None):
    results = ROOT / "build/dev/results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    command = ["ctest", "--test-dir", "build/dev", "--output-on-failure", "-j4"]
    command += ["-R", pattern] if pattern else []
    status, seconds = timed(title, *command, env={"GTEST_BRIEF": "1", **(env or {})})
    passed, failed = count_gtest(stages, results)
    # A program that crashed wrote no report: its failure is in the exit status alone.
    stages.add(title, seconds, passed, max(failed, 1) if status else 0)


def count_junit(stages, path):
    """Returns (passed, failed) of a report of pytest."""
    if not path.is_file():
        return 0, 1
    passed = failed = 0
    for case in xml.parse(path).getroot().iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed += 1
        elif "skipped" in outcomes:
            stages.skipped.append(f"{case.get('classname')}::{case.get('name')}")
        else:
            passed += 1
    return passed, failed


def pytest(stages, title, *arguments, env=None):
    report = ROOT / "build/results.xml"
    report.unlink(missing_ok=True)
    status, seconds = timed(title, str(PYTHON), "-m", "pytest", "-q", "-ra", f"--junitxml={report}",
                            *arguments, env=env)
    passed, failed = count_junit(stages, report)
    stages.add(title, seconds, passed, max(failed, 1) if status else 0)


def end_to_end(stages, title):
    """Every end-to-end test on several clusters, which are gone afterwards."""
    announce(title)
    begin = time.monotonic()
    process = subprocess.Popen(["tests/e2e/run", "--kube-contract"], cwd=ROOT, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    counts = None
    for line in process.stdout:
        print(line, end="", flush=True)
        counts = re.match(r"(\d+) passed, (\d+) failed in \d+ s$", line) or counts
        if line.startswith("skipped: "):
            stages.skipped.append(line.removeprefix("skipped: ").strip())
    status = process.wait()
    passed, failed = (int(n) for n in counts.groups()) if counts else (0, 1)
    stages.add(title, time.monotonic() - begin, passed, max(failed, 1) if status else failed)


def unit(stages):
    must(stages, "building the tests (ASan, UBSan)", "tools/stage", "build-dev")
    ctest(stages, "unit, golden, contract and simulation tests",
          env={"CACHEWARM_REGISTRY_BIN": str(REGISTRY),
               "CACHEWARM_KUBECTL_BIN": str(KUBECTL)})
    pytest(stages, "tests of chart, manifests, report, bench, GPU check, rules, tools and package",
           "tests/charts", "tests/report",
           "tests/bench", "tests/gpu", "tests/tidy", "tests/tools", "tests/mutate", "tests/python")
    pytest(stages, "tests of the judges of chaos and rights", "tests/e2e/chaos", "tests/e2e/rights",
           "-m", "not slow")


def programs(stages):
    must(stages, "building the programs", "tools/stage", "build-release")
    must(stages, "building the images", "tools/stage", "images")


def starts_vllm(folder):
    """True if a slow test of the folder or file below tests/e2e, or of all, starts vLLM."""
    return not folder or Path(folder).parts[0] in ("engines", "evidence")


def e2e(stages, folder):
    """On one cluster that stays up; slow tests run too."""
    if starts_vllm(folder):
        must(stages, "installing vLLM", "tools/setup/engines-venv")
    programs(stages)
    must(stages, "starting the cluster", "tests/cluster/cluster", "up")
    folders = [folder] if folder else ["test_cluster", "crds", "main_job", "engines", "evidence",
                                       "scheduling", "eviction", "scale", "why"]
    pytest(stages, f"e2e: {', '.join(folders)}", *(f"tests/e2e/{name}" for name in folders))
    logs = sorted(str(log) for log in (CLUSTER / "audit").glob("*.log"))
    if logs:
        title = "rights that the tests used"
        status, seconds = timed(title, str(PYTHON), "tests/e2e/rights/compare", *logs)
        stages.add(title, seconds, 0, 1 if status else 0)


def everything(stages):
    unit(stages)
    programs(stages)
    must(stages, "make demo", "tools/demo/run")
    must(stages, "removing the demo", "tools/demo/down")
    must(stages, "nothing is left of the demo", "tests/cluster/cluster", "check-clean")
    end_to_end(stages, "end-to-end tests, on several clusters")


def main():
    arguments = sys.argv[1:]
    stages = Stages()
    if not arguments:
        everything(stages)
    elif arguments == ["unit"]:
        unit(stages)
    elif arguments[0] == "e2e" and len(arguments) <= 2:
        e2e(stages, arguments[1] if len(arguments) == 2 else None)
    else:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    stages.finish()


if __name__ == "__main__":
    main()
