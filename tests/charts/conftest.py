# SPDX-License-Identifier: Apache-2.0
"""Fixtures: helm, promtool, and the objects of manifests and chart."""
import os
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts/cachewarm"
CACHE = Path(os.environ.get("CACHEWARM_CACHE") or Path.home() / ".cache/cachewarm")


def key(thing):
    return thing["kind"], thing["metadata"]["name"]


def by_key(text):
    things = [thing for thing in yaml.safe_load_all(text) if thing]
    keyed = {key(thing): thing for thing in things}
    assert len(keyed) == len(things), "two objects of one kind and name"
    return keyed


class Helm:
    """Runs real helm on the chart."""

    def __init__(self):
        self.program = os.environ.get("CACHEWARM_HELM") or str(CACHE / "helm/current/helm")

    def run(self, *words):
        return subprocess.run([self.program, *words], capture_output=True, text=True, timeout=120)

    def template(self, *words, namespace="cachewarm-system"):
        done = self.run("template", "cachewarm", str(CHART), "--namespace", namespace,
                        "--include-crds", *words)
        assert done.returncode == 0, done.stderr
        return by_key(done.stdout)


@pytest.fixture(scope="session")
def helm():
    helm = Helm()
    if not Path(helm.program).is_file():
        pytest.fail(f"no helm at {helm.program}: run tools/setup/all, or name one by "
                    "CACHEWARM_HELM")
    return helm


@pytest.fixture(scope="session")
def promtool():
    """Runs real promtool; returns its output."""
    program = (os.environ.get("CACHEWARM_PROMTOOL")
               or CACHE / "debs/current/prometheus/usr/bin/promtool")
    if not Path(program).is_file():
        pytest.fail(f"no promtool at {program}: run tools/setup/all, or name one by "
                    "CACHEWARM_PROMTOOL")

    def run(*words, text=None):
        done = subprocess.run([program, *words], input=text, capture_output=True, text=True,
                              timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="session")
def installed():
    return by_key((ROOT / "manifests/install.yaml").read_text())


@pytest.fixture(scope="session")
def installed_older():
    """For Kubernetes before 1.36."""
    return by_key((ROOT / "manifests/install-webhook.yaml").read_text())


@pytest.fixture(scope="session")
def rendered(helm):
    return helm.template()
