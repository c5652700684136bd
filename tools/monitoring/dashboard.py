# SPDX-License-Identifier: Apache-2.0
"""The Grafana dashboard of the chart: the content of charts/cachewarm/files/dashboard.json.
tools/render-manifests writes it. rows() describes the panels; the rest turns them into the JSON
that Grafana 11 reads. Pure."""
import json
from dataclasses import dataclass

import queries as q

WARMUP = 'namespace=~"$namespace",warmup=~"$warmup"'
STEP = "$__interval"  # of a panel, at least MIN_STEP, so that few starts make a visible bar
MIN_STEP = "5m"
RANGE = "$__range"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24  # columns of Grafana's grid


@dataclass(frozen=True)
class Panel:
    """One panel. `queries` are pairs of a PromQL expression and the legend of its series."""

    title: str
    description: str
    queries: list
    kind: str = "lines"  # lines, bars (stacked counts per step), number, shares (a bar per series)
    unit: str = "short"
    width: int = 8
    height: int = 8


def of_warmup(metric, selector=""):
    return f"{metric}{{{WARMUP}{selector and ','}{selector}}}"


def counted(metric, label, warmup=False):
    """One bar per value of the label."""
    series = of_warmup(metric) if warmup else metric
    return [(q.sum_by(label, q.events(series, STEP)), f"{{{{{label}}}}}")]


def durations(histogram, warmup=False):
    series = of_warmup(histogram) if warmup else histogram
    return [(q.quantile(share, series, STEP), f"{name} of the durations")
            for share, name in ((0.5, "median"), (0.95, "95 %"))]


def per_second(metric, label):
    return [(q.sum_by(label, f"rate({metric}[$__rate_interval])"), f"{{{{{label}}}}}")]


def starts(results, compare="=~", labels=""):
    series = of_warmup("cachewarm_pod_starts_total", f'result{compare}"{results}"')
    counts = q.total_increase(series, q.OF_RESULT, RANGE)
    return q.sum_by(labels, counts) if labels else f"sum({counts})"


def start_share(results, labels=""):
    return q.share(starts(results, labels=labels), starts(q.NOT_COUNTED, "!~", labels))


def seconds(counter, window):
    return f"sum({q.total_increase(of_warmup(counter), q.OF_TYPE, window)})"


def start_panels():
    saved, lost = "cachewarm_saved_seconds_total", "cachewarm_lost_seconds_total"
    by_warmup = "{{namespace}}/{{warmup}}"
    return [
        Panel("Hit rate", "Hits among the starts that count: all except builders and unknown ones.",
              [(start_share("hit"), "hits")], "number", "percentunit", 6, 4),
        Panel("Partial hits", "Starts that used a part of the cache and compiled the rest. Engines"
              " that write a file at each start have only these.",
              [(start_share("partial"), "partial hits")], "number", "percentunit", 6, 4),
        Panel("Net time saved", "Seconds saved minus seconds lost, against the median cold start."
              " The time that a pod was held is subtracted.",
              [(q.difference(seconds(saved, RANGE), seconds(lost, RANGE)), "saved")],
              "number", "s", 6, 4),
        Panel("Starts", "First starts of pods that count for the hit rate.",
              [(starts(q.NOT_COUNTED, "!~"), "starts")], "number", "short", 6, 4),
        Panel("Starts by result", "First starts of pods.",
              [(q.sum_by("result", q.total_increase(of_warmup("cachewarm_pod_starts_total"),
                                                    q.OF_RESULT, STEP)), "{{result}}")],
              "bars", width=12),
        Panel("Hits and partial hits by warmup", "Share of the starts that count.",
              [(start_share(q.USED_BUNDLE, q.OF_WARMUP), by_warmup)], "shares", "percentunit", 12),
        Panel("Time saved and lost", "Against the median cold start, per step.",
              [(seconds(saved, STEP), "saved"), (seconds(lost, STEP), "lost")], "lines", "s"),
        Panel("Duration of starts by result",
              "Median time from the start of the container to Ready.",
              [(q.quantile(0.5, of_warmup("cachewarm_pod_start_seconds"), STEP, "result"),
                "{{result}}")], "lines", "s"),
        Panel("GPU time saved", "Seconds saved minus seconds lost, each multiplied by the devices"
              " of its pod, per step. GPU time of builder Jobs is shown separately.",
              [(q.difference(seconds("cachewarm_saved_gpu_seconds_total", STEP),
                             seconds("cachewarm_lost_gpu_seconds_total", STEP)), "saved"),
               (seconds("cachewarm_builder_gpu_seconds_total", STEP), "spent by builder Jobs")],
              "lines", "s"),
        Panel("Time to the last compiled file", "From the start of the container, of starts that"
              " compiled.", durations("cachewarm_compile_seconds", True), "lines", "s"),
        Panel("Compiled after Ready",
              "Cache entries that running pods compiled. No bundle has them.",
              [(q.sum_by(q.OF_WARMUP, q.total_increase(of_warmup("cachewarm_late_compiles_total"),
                                                       q.OF_TYPE, STEP)), by_warmup)], "bars"),
        Panel("Start-up phases of engines", "Median duration as vLLM or SGLang logs it, by result"
              " of the start. Init contains compile and graph capture. Needs engineLogs.enabled.",
              [(q.quantile(0.5, of_warmup("cachewarm_engine_phase_seconds"), STEP,
                           "phase, result"), "{{phase}} {{result}}")], "lines", "s"),
        Panel("KV cache of engines", "Tokens that fit into the KV cache, by result of the start. A"
              " cold start leaves less room. Needs engineLogs.enabled.",
              [(of_warmup("cachewarm_engine_kv_cache_tokens"),
                "{{warmup}} {{gpu_type}} {{result}}")]),
        Panel("Logs of engines by result", "Logs that the operator read after a start.",
              counted("cachewarm_engine_log_reads_total", "result"), "bars"),
        Panel("Pods held now", "Pods past their deadline are those that the operator failed to"
              " release.",
              [(f"sum({of_warmup('cachewarm_pods_held')})", "held"),
               (f"sum({of_warmup('cachewarm_pods_held_past_deadline')})", "past their deadline")]),
        Panel("Time that pods are held", "From the creation of a pod to its release.",
              durations("cachewarm_hold_seconds", True), "lines", "s"),
        Panel("Releases by reason", "Held pods that were released.",
              counted("cachewarm_gate_releases_total", "reason", True), "bars"),
    ]


def build_panels():
    return [
        Panel("Builds by reason", "Captured is a success; every other reason is a failure.",
              counted("cachewarm_builds_total", "reason", True), "bars"),
        Panel("Duration of builds", "From the election of a builder to the end of its build.",
              durations("cachewarm_build_seconds", True), "lines", "s"),
        Panel("Harvests by result", "Captures of what running pods compiled (spec.harvest).",
              counted("cachewarm_harvests_total", "result", True), "bars"),
        Panel("Captures by result", "Captures of builder directories, by all agents.",
              counted("cachewarm_captures_total", "result"), "bars"),
        Panel("Published bytes", "Compressed bytes of published bundles, per step.",
              [(f"sum({q.increase('cachewarm_published_bytes_total', STEP)})", "published")],
              "lines", "bytes"),
        Panel("Nodes that wait for a fetch slot", "Limited by fetch.nodesMax.",
              [(q.sum_by(q.OF_WARMUP, of_warmup("cachewarm_nodes_waiting")),
                "{{namespace}}/{{warmup}}")]),
        Panel("Suspended bundles", "Suspended bundles that no newer bundle has replaced.",
              [(q.sum_by(q.OF_WARMUP, of_warmup("cachewarm_suspended_bundles")),
                "{{namespace}}/{{warmup}}")]),
    ]


def node_panels():
    used, limit = "cachewarm_root_used_bytes", "cachewarm_root_limit_bytes"
    return [
        Panel("Active trees", "A tree serves one warmup on one node. A cold tree has no bundle.",
              [("sum(cachewarm_warm_generations)", "warm"),
               ("sum(cachewarm_cold_generations)", "cold"),
               ("count(cachewarm_warm_generations)", "nodes with an agent")]),
        Panel("Fetches by result", "Fetches of a tree, by all agents.",
              counted("cachewarm_fetches_total", "result"), "bars"),
        Panel("Duration of fetches", "From the start of a fetch to the complete tree on disk.",
              durations("cachewarm_fetch_seconds"), "lines", "s"),
        Panel("Bytes fetched and reused", "Downloaded from the store, and linked from other trees.",
              [("sum(rate(cachewarm_fetched_bytes_total[$__rate_interval]))", "fetched"),
               ("sum(rate(cachewarm_reused_bytes_total[$__rate_interval]))", "reused")],
              "lines", "Bps"),
        Panel("Store calls by code", "OK and NOT_FOUND are answers of a store that works.",
              per_second("cachewarm_store_requests_total", "code"), "lines", "reqps"),
        Panel("Duration of store calls", "95 % of the calls take at most this long.",
              [(q.quantile(0.95, "cachewarm_store_seconds", STEP, "operation"), "{{operation}}")],
              "lines", "s"),
        Panel("Failed steps of agents", "By the reason in the status of the NodeCache.",
              counted("cachewarm_agent_failures_total", "reason"), "bars"),
        Panel("Bundles in quarantine", "By reason, on all nodes.",
              [(q.sum_by("reason", "cachewarm_quarantined_bundles"), "{{reason}}")]),
        Panel("Bundles without space", "Bundles that do not fit on the disk of their node.",
              [(q.sum_by("reason", "cachewarm_refused_bundles"), "{{reason}}")]),
        Panel("Conditions of nodes", "Nodes by the conditions of their NodeCache that are True.",
              [(q.sum_by("type", "cachewarm_node_condition"), "{{type}}")]),
        Panel("Scrubs by result", "Comparisons of active trees with their bundles.",
              counted("cachewarm_scrubs_total", "result"), "bars"),
        Panel("Evictions by reason", "Trees that agents removed from their nodes.",
              counted("cachewarm_agent_evictions_total", "reason"), "bars"),
        Panel("Bytes evicted and evictable",
              "Evictable trees wait until no running pod can have them mounted.",
              [(f"sum({q.increase('cachewarm_agent_evicted_bytes_total', STEP)})", "evicted"),
               ("sum(cachewarm_agent_evictable_bytes)", "evictable")], "lines", "bytes"),
        Panel("Disk used by caches", "The ten nodes with the largest caches.",
              [(f"topk(10, {used})", "{{node}} {{instance}}")], "lines", "bytes", 12),
        Panel("Share of the byte limit", "The ten nodes that use the largest share of byteLimit."
              " Nodes without byteLimit are not shown.",
              [(f"topk(10, {used} / ({limit} > 0))", "{{node}} {{instance}}")],
              "lines", "percentunit", 12),
    ]


def program_panels():
    return [
        Panel("Replicas of the operator", "One of them is the leader.",
              [("count(cachewarm_leader)", "replicas"), ("sum(cachewarm_leader)", "leaders")]),
        Panel("Injection", "1 if this mode of admission is installed.",
              [("max by (mode) (cachewarm_admission_mode_info)", "{{mode}}")]),
        Panel("Versions", "Pods by the version of their program.",
              [("count by (version) (cachewarm_build_info)", "{{version}}")]),
        Panel("Reconciliations by result", "Of all controllers of the operator.",
              per_second("cachewarm_reconciles_total", "result"), "lines", "ops"),
        Panel("Duration of reconciliations", "95 % of them take at most this long.",
              [(q.quantile(0.95, "cachewarm_reconcile_seconds", STEP, "controller"),
                "{{controller}}")], "lines", "s"),
        Panel("API requests by code", "Of operator and agents; code 0 is no response.",
              per_second("cachewarm_api_requests_total", "code"), "lines", "reqps"),
        Panel("Iterations of agents by result", "Of the sync loops of all agents.",
              per_second("cachewarm_agent_sync_total", "result"), "lines", "ops"),
        Panel("Webhook requests by result", "Only before Kubernetes 1.36.",
              per_second("cachewarm_webhook_requests_total", "result"), "lines", "reqps"),
        Panel("Lifetime of the webhook's certificate", "The operator or cert-manager renews it.",
              [("min(cachewarm_webhook_certificate_expiry_timestamp_seconds > 0) - time()",
                "until it expires")], "lines", "s"),
        Panel("Duration of webhook requests", "The API server stops waiting after 2 s.",
              durations("cachewarm_webhook_seconds"), "lines", "s"),
    ]


def rows():
    return [("Starts of pods", start_panels()), ("Builds and bundles", build_panels()),
            ("Nodes", node_panels()), ("Operator and agents", program_panels())]


def options_of(kind):
    reduced = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
               "orientation": "horizontal"}
    if kind == "number":
        return {**reduced, "colorMode": "value", "graphMode": "none", "textMode": "value",
                "justifyMode": "auto"}
    if kind == "shares":
        return {**reduced, "displayMode": "basic", "showUnfilled": True}
    return {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True,
                       "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"}}


def defaults_of(panel):
    defaults = {"unit": panel.unit}
    if panel.unit == "percentunit":
        defaults |= {"min": 0, "max": 1}
    if panel.kind == "bars":
        defaults["custom"] = {"drawStyle": "bars", "fillOpacity": 80, "lineWidth": 0,
                              "stacking": {"group": "A", "mode": "normal"}}
    if panel.kind == "lines":
        defaults["custom"] = {"drawStyle": "line", "fillOpacity": 10, "lineWidth": 1,
                              "showPoints": "never", "spanNulls": False}
    return defaults


def target(number, query, instant):
    expression, legend = query
    return {"datasource": SOURCE, "editorMode": "code", "expr": expression, "instant": instant,
            "legendFormat": legend, "range": not instant, "refId": chr(ord("A") + number)}


def panel_json(number, panel, place):
    instant = panel.kind in ("number", "shares")
    result = {
        "id": number, "title": panel.title, "description": panel.description,
        "type": {"number": "stat", "shares": "bargauge"}.get(panel.kind, "timeseries"),
        "datasource": SOURCE, "gridPos": place,
        "targets": [target(i, query, instant) for i, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": defaults_of(panel), "overrides": []},
        "options": options_of(panel.kind)}
    if not instant:
        result["interval"] = MIN_STEP
    return result


def panels_json():
    panels, y = [], 0
    for title, row in rows():
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "collapsed": False,
                       "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}, "panels": []})
        x, y, height = 0, y + 1, 0
        for panel in row:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            place = {"x": x, "y": y, "w": panel.width, "h": panel.height}
            panels.append(panel_json(len(panels) + 1, panel, place))
            x, height = x + panel.width, max(height, panel.height)
        y += height
    return panels


def variable(name, label, series):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE,
            "query": {"query": f"label_values({series}, {name})", "refId": "A"}, "refresh": 2,
            "sort": 1, "multi": True, "includeAll": True, "allValue": ".*", "options": []}


def text():
    dashboard = {
        "uid": "cachewarm", "title": "cachewarm", "tags": ["cachewarm"], "schemaVersion": 39,
        "description": "Made by tools/render-manifests from tools/monitoring/dashboard.py.",
        "editable": True, "graphTooltip": 1, "refresh": "1m", "timezone": "browser",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource",
             "query": "prometheus", "options": [], "refresh": 1},
            variable("namespace", "Namespace", "cachewarm_pod_starts_total"),
            variable("warmup", "CacheWarmup",
                     'cachewarm_pod_starts_total{namespace=~"$namespace"}')]},
        "annotations": {"list": []}, "links": [], "panels": panels_json()}
    return json.dumps(dashboard, indent=1) + "\n"
