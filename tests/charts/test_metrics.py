# SPDX-License-Identifier: Apache-2.0
"""Checks the metrics of the real programs, which run here without an API server, with promtool."""
import json
import os
import re
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

import exported
from conftest import ROOT

BUILD = Path(os.environ.get("CACHEWARM_BUILD") or ROOT / "build/dev")
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))
# No server listens on port 1: the programs serve their metrics and retry.
KUBECONFIG = {"apiVersion": "v1", "kind": "Config", "current-context": "none",
              "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
              "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
              "users": [{"name": "none", "user": {"token": "none"}}]}


def port_of(process):
    """Reads the log up to the line that names the port. The log ends if the program does."""
    read = []
    for line in process.stderr:
        read.append(line)
        fields = json.loads(line) if line.startswith("{") else {}
        if fields.get("msg") in ("operator started", "agent started"):
            return fields["port"]
    pytest.fail("".join(read))


def scrape(url):
    """Returns the metrics once the program has counted its first request to the API server, which
    fails. Series with labels begin with their first event."""
    deadline = time.monotonic() + 60
    while True:
        text = LOCAL.open(url, timeout=60).read().decode()
        if "\ncachewarm_api_requests_total{" in text:
            return text
        if time.monotonic() > deadline:
            pytest.fail(f"no request to the API server was counted in 60 s:\n{text}")
        time.sleep(0.1)


@pytest.fixture(scope="module", params=["Operator", "Agent"])
def scraped(request, tmp_path_factory):
    """The name of a program, and the text of its /metrics."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "kubeconfig").write_text(yaml.safe_dump(KUBECONFIG))
    program = request.param.lower()
    command = [BUILD / program / f"cachewarm-{program}", f"--kubeconfig={folder}/kubeconfig",
               "--listen=127.0.0.1:0"]
    if program == "agent":
        command += ["--node-name=node", f"--root={folder}/root", f"--store=layout://{folder}/store"]
        (folder / "root").mkdir()
    if not command[0].is_file():
        pytest.fail(f"no program at {command[0]}: run tools/stage build-dev, or name another build "
                    "directory by CACHEWARM_BUILD")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield request.param, scrape(f"http://127.0.0.1:{port_of(process)}/metrics")
    finally:
        process.kill()
        process.communicate()


def exposition_of(metrics):
    """One series of each metric of the reference page, with its help and type: metrics of which a
    fresh program has no series yet are checked too."""
    lines = []
    for metric in metrics:
        pairs = [f'{label}="x"' for label in sorted(metric.labels)]
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        samples = [(metric.name, pairs)]
        if metric.kind == "histogram":
            samples = [(f"{metric.name}_bucket", [*pairs, 'le="+Inf"']),
                       (f"{metric.name}_sum", pairs), (f"{metric.name}_count", pairs)]
        lines += [f"{name}{{{','.join(labels)}}} 1" for name, labels in samples]
    return "\n".join(lines) + "\n"


def test_promtool_finds_no_problem_in_the_output_of_a_program(promtool, scraped):
    _, text = scraped
    assert "\n# TYPE cachewarm_build_info gauge\n" in text
    assert promtool("check", "metrics", text=text) == ""


@pytest.mark.parametrize("program", ["Operator", "Agent"])
def test_promtool_finds_no_problem_in_the_metrics_of_the_reference_page(promtool, program):
    metrics = exported.metrics_of(program)
    assert len(metrics) > 15
    assert promtool("check", "metrics", text=exposition_of(metrics)) == ""


def test_reference_page_describes_what_a_program_exports(scraped):
    program, text = scraped
    known = {metric.name: metric for metric in exported.metrics_of(program)}
    served = re.findall(r"^# HELP (\S+) (.+)\n# TYPE \S+ (\w+)$", text, re.MULTILINE)
    assert len(served) >= 5
    for name, meaning, kind in served:
        assert (known[name].help.replace("\\|", "|"), known[name].kind) == (meaning, kind)
    for name, pairs in re.findall(r"^(\w+)\{(.*)\} \S+$", text, re.MULTILINE):
        labels = set(re.findall(r'(\w+)="', pairs)) - {"le"}
        assert labels == known[re.sub("_(bucket|sum|count)$", "", name)].labels, name
