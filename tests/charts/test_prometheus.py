# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes two operators and an agent, played by this test, with the documented
configuration, and evaluates the rules and the queries of the dashboard."""
import json
import os
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from conftest import CACHE, CHART, ROOT

LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))
SECONDS = 60  # of waiting for a condition
HITS = 'cachewarm_pod_starts_total{namespace="team",warmup="llama",gpu_type="cpu",result="hit"}'
COLD = HITS.replace("hit", "cold")


def of_leader(cold=0, hits=0):
    """The samples of a leader with these totals."""
    return "cachewarm_leader 1", f"{COLD} {cold}", f"{HITS} {hits}"


class Exporter:
    """Serves metrics as one pod does. `text` is what the next scrape reads; "" is an error."""

    def __init__(self, pod, node, port_name="metrics"):
        self.text = ""
        self.scrapes = 0
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                exporter.scrapes += 1
                self.send_response(200 if exporter.text else 503)
                self.end_headers()
                self.wfile.write(exporter.text.encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.target = {
            "targets": [f"127.0.0.1:{self.server.server_port}"],
            "labels": {"__meta_kubernetes_namespace": "cachewarm-system",
                       "__meta_kubernetes_pod_name": pod,
                       "__meta_kubernetes_pod_node_name": node,
                       "__meta_kubernetes_pod_container_port_name": port_name,
                       "__meta_kubernetes_pod_label_app_kubernetes_io_name": "cachewarm"}}

    def serve(self, *samples):
        """Serves the samples until at least one more scrape has read them."""
        self.text = "".join(sample + "\n" for sample in samples)
        until = self.scrapes + 2
        wait_for(lambda: self.scrapes >= until, "a scrape")


class Prometheus:
    def __init__(self, folder, config):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        program = (os.environ.get("CACHEWARM_PROMETHEUS")
                   or CACHE / "debs/current/prometheus/usr/bin/prometheus")
        if not Path(program).is_file():
            pytest.fail(f"no prometheus at {program}: run tools/setup/all, or name one by "
                        "CACHEWARM_PROMETHEUS")
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [program, f"--config.file={folder}/prometheus.yaml",
             f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.url.removeprefix('http://')}"],
            stderr=self.log, stdout=self.log)

    def get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        try:
            with LOCAL.open(f"{self.url}/api/v1/{path}?{query}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            pytest.fail(f"{path} {parameters}: {error.read().decode()}")
        except OSError:
            assert self.process.poll() is None, Path(self.log.name).read_text()
            return {}

    def query(self, expression):
        """Pairs of labels and value."""
        result = self.get("query", query=expression).get("result", [])
        return [(sample["metric"], float(sample["value"][1])) for sample in result]

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def wait_for(condition, what):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {SECONDS} s for {what}"
        time.sleep(0.05)


def documented_job():
    text = (ROOT / "docs/monitoring.md").read_text()
    block = text.partition("```yaml\nscrape_configs:")[2].partition("```")[0]
    (job,) = yaml.safe_load("scrape_configs:" + block)["scrape_configs"]
    return job


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Prometheus and the exporters. The first leader has counted one cold start and five hits."""
    exporters = {"operator-1": Exporter("operator-1", "node-a"),
                 "operator-2": Exporter("operator-2", "node-b"),
                 "agent-1": Exporter("agent-1", "node-a"),
                 "webhook": Exporter("operator-1", "node-a", port_name="webhook")}
    job = documented_job()
    del job["kubernetes_sd_configs"]  # Debian's Prometheus is built without it
    job["static_configs"] = [exporter.target for exporter in exporters.values()]
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"), {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms",
                   "evaluation_interval": "500ms"},
        "rule_files": [str(CHART / "files/rules.yaml")], "scrape_configs": [job]})
    try:
        exporters["agent-1"].text = "cachewarm_warm_generations 1\n"
        exporters["operator-2"].text = "cachewarm_leader 0\n"
        exporters["operator-1"].serve(*of_leader())
        for hits in range(6):
            exporters["operator-1"].serve(*of_leader(1, hits))
        yield prometheus, exporters
    finally:
        prometheus.stop()
        for exporter in exporters.values():
            exporter.server.shutdown()


def test_series_of_a_warmup_keep_its_namespace(cluster):
    prometheus, _ = cluster
    wait_for(lambda: prometheus.query(HITS), "the series of the warmup")
    ((labels, value),) = prometheus.query(HITS)
    assert value == 5
    assert (labels["namespace"], labels["pod"], labels["node"]) == ("team", "operator-1", "node-a")
    assert not [label for label in labels if label.startswith("exported_")]


def test_series_of_a_program_get_the_namespace_of_its_pod(cluster):
    prometheus, exporters = cluster
    assert [(labels["namespace"], labels["pod"], value)
            for labels, value in prometheus.query("sort(cachewarm_leader)")] == [
        ("cachewarm-system", "operator-2", 0), ("cachewarm-system", "operator-1", 1)]
    assert exporters["webhook"].scrapes == 0


def test_every_rule_is_evaluated_without_an_error(cluster):
    prometheus, _ = cluster

    def rules():
        return [rule for group in prometheus.get("rules").get("groups", [])
                for rule in group["rules"]]

    wait_for(lambda: rules() and all(rule["health"] != "unknown" for rule in rules()),
             "the first evaluation")
    assert {rule["health"] for rule in rules()} == {"ok"}, rules()


def test_every_query_of_the_dashboard_is_answered(cluster):
    prometheus, _ = cluster
    dashboard = json.loads((CHART / "files/dashboard.json").read_text())
    values = {"$__rate_interval": "1m", "$__interval": "1m", "$__range": "1h",
              "$namespace": "team", "$warmup": ".*"}
    answered = {}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for name, value in values.items():
                expression = expression.replace(name, value)
            answered[panel["title"]] = prometheus.query(expression)
    assert len(answered) > 30
    assert [labels["version"] for labels, _ in answered["Versions"]] == []
    assert sorted(labels["result"] for labels, _ in answered["Starts by result"]) == ["cold", "hit"]


def test_hit_rate_is_exact_and_stays_so_when_the_leader_changes(cluster):
    prometheus, exporters = cluster
    rate = "namespace_warmup:cachewarm_hits:ratio6h"
    team = {"__name__": rate, "namespace": "team", "warmup": "llama"}
    wait_for(lambda: prometheus.query(rate) == [(team, 5 / 6)], "five hits of six starts")
    # The first leader ends. The second one continues its totals: a hit that was counted between the
    # last scrape of the one and the first scrape of the other is not lost.
    exporters["operator-1"].text = ""
    for hits in range(6, 10):
        exporters["operator-2"].serve(*of_leader(1, hits))
    wait_for(lambda: prometheus.query(rate) == [(team, 0.9)], "nine hits of ten starts")
    # A restart in the same pod: the new process serves no total before its first plan.
    exporters["operator-2"].serve("cachewarm_leader 0")
    exporters["operator-2"].serve(*of_leader(1, 10))
    wait_for(lambda: prometheus.query(rate) == [(team, 10 / 11)], "ten hits of eleven starts")
