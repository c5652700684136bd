# SPDX-License-Identifier: Apache-2.0
"""Checks the Grafana dashboard of the chart: its JSON against Grafana's own model, its queries by
promtool and against the metrics that the programs export."""
import json
import re

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

import exported
from conftest import CHART

FILE = CHART / "files/dashboard.json"
# Values of the variables, as Grafana fills them in.
VALUES = {"$__interval": "5m", "$__rate_interval": "5m", "$__range": "6h", "$namespace": ".*",
          "$warmup": "llama|mistral"}
# Exported, and shown on no panel, with the reason.
NOT_SHOWN = {
    "cachewarm_activations_total": "fetches show the same",
    "cachewarm_admission_dry_runs_total": "condition Ready shows the result",
    "cachewarm_agent_sync_seconds": "internal",
    "cachewarm_api_request_seconds": "internal",
    "cachewarm_file_event_overflows_total": "starts of that time are shown as unknown",
    "cachewarm_observed_starts_total": "counts the same starts as cachewarm_pod_starts_total",
    "cachewarm_publish_seconds": "part of the duration of builds",
    "cachewarm_redis_compile_seconds_total": "docs/redis.md",
    "cachewarm_redis_connections": "docs/redis.md",
    "cachewarm_redis_rejected_connections_total": "docs/redis.md",
    "cachewarm_redis_requests_total": "docs/redis.md",
    "cachewarm_root_free_bytes": "monitored with the nodes",
    "cachewarm_scrubbed_bytes_total": "internal",
    "cachewarm_startup_taints_removed_total": "only with startup taints",
    "cachewarm_store_bytes_total": "fetched and published bytes show the same",
    "cachewarm_watched_directories": "internal",
}


def dashboard():
    return json.loads(FILE.read_text())


def panels():
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries():
    """Pairs of the title of a panel and one of its queries."""
    return [(panel["title"], target["expr"]) for panel in panels() for target in panel["targets"]]


def filled(expression):
    for name, value in sorted(VALUES.items(), reverse=True):
        expression = expression.replace(name, value)
    return expression


def differences(before, after, path=""):
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from differences(value, after[key], f"{path}.{key}")
            else:
                yield f"{path}.{key} is unknown"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, pair in enumerate(zip(before, after)):
            yield from differences(*pair, f"{path}[{i}]")
    elif before != after:
        yield f"{path} is {after!r}"


def test_every_field_of_the_dashboard_exists_in_grafanas_model():
    register_default_plugins()
    read = json.loads(JSONEncoder(sort_keys=True, indent=1).encode(
        Dashboard.from_json(dashboard())))
    assert not list(differences(dashboard(), read))


def test_queries_read_only_exported_metrics_and_labels():
    for title, expression in queries():
        assert not list(exported.problems_of(expression)), title
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            series, label = re.fullmatch(r"label_values\((.*), (\w+)\)",
                                         variable["query"]["query"]).groups()
            assert not list(exported.problems_of(f"sum by ({label}) ({series})")), variable["name"]


def test_legends_use_labels_that_the_query_keeps():
    for panel in panels():
        for target in panel["targets"]:
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
            if "by (" in target["expr"] or target["expr"].startswith("sum("):
                assert labels <= kept, panel["title"]
            assert labels or len(panel["targets"]) > 1 or target["legendFormat"], panel["title"]


def test_promtool_parses_every_query(promtool, tmp_path):
    rules = [{"record": f"query:{i}", "expr": filled(expression)}
             for i, (_, expression) in enumerate(queries())]
    assert not [rule for rule in rules if "$" in rule["expr"]]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    promtool("check", "rules", file)


def test_every_metric_is_shown_or_has_a_reason_not_to_be():
    text = " ".join(expression for _, expression in queries())
    shown = {name for name in exported.all_metrics()
             if re.search(rf"\b{name}(_bucket)?\b", text)}
    assert set(exported.all_metrics()) - shown == set(NOT_SHOWN)


@pytest.mark.parametrize("title,value", [
    ("Hit rate", 0.6), ("Partial hits", 0.3), ("Starts", 10),
    ("Net time saved", 93),  # 100 s saved and 7 s lost
])
def test_numbers_are_those_of_the_starts(promtool, tmp_path, title, value):
    (expression,) = [expression for name, expression in queries() if name == title]
    # The leader is first pod a, then pod b.
    series = {'cachewarm_pod_starts_total{namespace="team",warmup="%s",result="%s",pod="%s"}' % key:
              values for key, values in {
                  ("llama", "builder", "a"): "0x3 1x200", ("llama", "cold", "a"): "0x4 1x200",
                  ("llama", "hit", "a"): "0x5 1+1x3 4x9 stale", ("llama", "hit", "b"): "_x99 6x99",
                  ("llama", "partial", "a"): "0x6 1+1x2 3x200",
                  ("llama", "unknown", "a"): "0x7 1x200", ("other", "miss", "a"): "0x5 9x200",
              }.items()}
    for counter, values in (("saved", "0x5 20+20x4 100x200"), ("lost", "0x4 7x200")):
        labels = '{namespace="team",warmup="llama",gpu_type="cpu"}'
        series[f"cachewarm_{counter}_seconds_total{labels}"] = values
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [{
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{
            "expr": f"abs({filled(expression)} - {value}) < bool 1e-9", "eval_time": "150m",
            "exp_samples": [{"labels": "{}", "value": 1}]}]}]}))
    promtool("test", "rules", file)


def test_panels_have_distinct_names_and_places_and_a_description():
    everything = dashboard()["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    assert len({panel["title"] for panel in everything}) == len(everything)
    taken = set()
    for panel in everything:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]


def test_chart_installs_the_dashboard_where_grafanas_sidecar_finds_it(helm, rendered):
    assert ("ConfigMap", "cachewarm-dashboard") not in rendered
    installed = helm.template("--set", "metrics.dashboard.enabled=true")[
        "ConfigMap", "cachewarm-dashboard"]
    assert installed["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert list(installed["data"]) == ["cachewarm.json"]
    assert json.loads(installed["data"]["cachewarm.json"]) == dashboard()
