# SPDX-License-Identifier: Apache-2.0
"""`cachewarm lint` finds nothing in the healthy manifests of this repository, and finds a planted
fault in each of them that runs an engine."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/e2e"))

from harness.engine_server import engine_server  # noqa: E402
from harness.model_server import ModelServer  # noqa: E402
from harness.sleeper import Sleeper  # noqa: E402

PROGRAM = Path(os.environ.get("CACHEWARM_PROGRAMS", ROOT / "build/dev/cli")) / "cachewarm"
ENGINES = ("vllm", "jax", "numba")


def workloads():
    """The objects of the e2e tests' workloads that run an engine."""
    server = ModelServer(nodes=("a",), one_per_node=True, run_as=1000)
    objects = [server.deployment(), server.stateful_set(), server.job(), server.pod()]
    return objects + [engine_server(name, name, ("a",)).deployment() for name in ENGINES]


def documented():
    """The YAML documents with a kind in README and docs."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    blocks = [block for page in pages
              for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.M | re.S)]
    documents = [thing for block in blocks for thing in yaml.safe_load_all(block)]
    return [thing for thing in documents if isinstance(thing, dict) and "kind" in thing]


def installed():
    return [thing for name in ("install.yaml", "install-webhook.yaml")
            for thing in yaml.safe_load_all((ROOT / "manifests" / name).read_text()) if thing]


def lint(objects, *flags):
    text = json.dumps({"kind": "List", "items": objects})
    done = subprocess.run([str(PROGRAM), "lint", "-f", "-", "-o", "json", *flags], input=text,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1) and done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("objects", [workloads, documented, installed])
def test_healthy_manifests_have_no_finding(objects):
    things = objects()
    assert things, "no manifest was found"
    assert lint(things)["findings"] == []


def test_pod_of_a_test_that_runs_no_engine_is_not_linted():
    sleeper = Sleeper("a", container={"image": "busybox", "readinessProbe": {"exec": {}}})
    assert lint([sleeper.deployment()])["podTemplates"] == 0


def test_planted_fault_is_found_in_every_workload():
    things = workloads()
    for thing in things:
        spec = thing["spec"] if thing["kind"] == "Pod" else thing["spec"]["template"]["spec"]
        spec["containers"][0]["env"].append({"name": "VLLM_API_KEY", "value": "planted"})
    found = lint(things)
    assert [each["rule"] for each in found["findings"]] == ["api-key-environment"] * len(things)
    assert found["podTemplates"] == len(things)
