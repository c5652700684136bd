# SPDX-License-Identifier: Apache-2.0
"""Checks the recording rules and alerts of the chart: promtool runs each on series that fire it, on
healthy ones, and on those of programs that restart."""
import re
from dataclasses import dataclass

import pytest
import yaml

import exported
from conftest import CHART, ROOT

RULES = CHART / "files/rules.yaml"
RUNBOOKS = ROOT / "docs/runbooks"
INSTALLED = 'namespace="cachewarm-system"'
WARMUP = {"namespace": "team", "warmup": "llama"}


def groups():
    return yaml.safe_load(RULES.read_text())["groups"]


def alerts():
    return {rule["alert"]: rule for group in groups() for rule in group["rules"] if "alert" in rule}


def of_warmup(metric, values, pod="operator-1", **labels):
    """A series that the operator `pod` exports about the warmup team/llama."""
    pairs = {**WARMUP, "pod": pod, **labels}
    return metric + "{" + ",".join(f'{k}="{v}"' for k, v in pairs.items()) + "}", values


def starts(result, values, **labels):
    return of_warmup("cachewarm_pod_starts_total", values, gpu_type="cpu", result=result, **labels)


def builds(reason, values, **labels):
    return of_warmup("cachewarm_builds_total", values, gpu_type="cpu", reason=reason, **labels)


def releases(reason, values, **labels):
    return of_warmup("cachewarm_gate_releases_total", values, reason=reason, **labels)


def of_program(metric, values, pod, labels=""):
    return f'{metric}{{{INSTALLED},pod="{pod}"{labels and ","}{labels}}}', values


def leader(values, pod="operator-1"):
    return of_program("cachewarm_leader", values, pod)


def admission(mode, values, pod="operator-1"):
    return of_program("cachewarm_admission_mode_info", values, pod, f'mode="{mode}"')


def agent(metric, values, node="a", labels=""):
    return of_program(metric, values, f"agent-{node}", f'node="{node}"{labels and ","}{labels}')


def disk(used, limit, node="a"):
    return [agent("cachewarm_root_used_bytes", used, node),
            agent("cachewarm_root_limit_bytes", limit, node)]


def refused(values, node="a"):
    return [agent("cachewarm_refused_bundles", values, node, 'reason="OverByteLimit"'),
            agent("cachewarm_refused_bundles", "0x2000", node, 'reason="DiskFull"')]


def certificate(values, pod="operator-1"):
    return of_program("cachewarm_webhook_certificate_expiry_timestamp_seconds", values, pod)


def condition(values, node="a", kind="GPUNotVisible"):
    return agent("cachewarm_node_condition", values, node, f'type="{kind}"')


def quarantine(values, node="a", reason="VerifyFailed"):
    return agent("cachewarm_quarantined_bundles", values, node, f'reason="{reason}"')


def store(code, values, node="a"):
    return agent("cachewarm_store_requests_total", values, node,
                 f'operation="read_blob",code="{code}"')


@dataclass(frozen=True)
class Case:
    """One alert at one time. `share` is the value that its description shows; "" if it shows none.
    `labels` are None where it must be silent."""

    alert: str
    title: str
    series: list
    at: str
    labels: dict | None = None
    share: str = ""


def fires(alert, title, series, at, share="", **labels):
    return Case(alert, title, series, at, labels, share)


def silent(alert, title, series, at):
    return Case(alert, title, series, at)


# The interval between samples is one minute.
LLAMA_ON_CPU = {**WARMUP, "gpu_type": "cpu"}
RESTART = "1+1x9 _x3 stale _x20 1+0x60"  # ten events, then one after a restart
TOTAL = "0 1+1x9 _x3 stale _x20 11x60"  # the same events, counted in a status
CASES = [
    fires("CachewarmOperatorNoLeader", "two standbys",
          [leader("0x20"), leader("0x20", "operator-2")], "10m"),
    fires("CachewarmOperatorNoLeader", "no operator", [], "10m"),
    silent("CachewarmOperatorNoLeader", "healthy", [leader("1x20"), leader("0x20", "operator-2")],
           "10m"),
    silent("CachewarmOperatorNoLeader", "restart: the standby leads after three minutes",
           [leader("1x5 stale _x2 0x20"), leader("0x8 1x20", "operator-2")], "8m"),

    fires("CachewarmNoAdmission", "neither is installed",
          [admission("policy", "0x30"), admission("webhook", "0x30")], "15m",
          namespace="cachewarm-system"),
    silent("CachewarmNoAdmission", "healthy",
           [admission("policy", "1x30"), admission("webhook", "0x30")], "15m"),
    silent("CachewarmNoAdmission", "healthy with the webhook",
           [admission("policy", "0x30"), admission("webhook", "1x30")], "15m"),
    silent("CachewarmNoAdmission", "restart: one replica has not checked yet",
           [admission("policy", "1x30"), admission("policy", "_x5 0x30", "operator-2")], "15m"),

    fires("CachewarmWebhookCertificateExpiring", "in 6 days 21 hours",
          [certificate("600000x120"), certificate("900000x120", "operator-2")], "90m",
          "6d 21h 10m 0s", namespace="cachewarm-system"),
    silent("CachewarmWebhookCertificateExpiring", "healthy: in 90 days",
           [certificate("7776000x120")], "90m"),
    silent("CachewarmWebhookCertificateExpiring", "healthy: no webhook", [certificate("0x120")],
           "90m"),
    silent("CachewarmWebhookCertificateExpiring", "restart: the new certificate is served",
           [certificate("600000x30 stale _x3 7776000x90")], "90m"),

    fires("CachewarmGPUNotVisible", "two of three nodes",
          [condition("1x30"), condition("1x30", "b"), condition("0x30", "c")], "20m", "2",
          namespace="cachewarm-system"),
    silent("CachewarmGPUNotVisible", "healthy", [condition("0x30"), condition("0x30", "b")], "20m"),
    silent("CachewarmGPUNotVisible", "healthy: another condition",
           [condition("1x30", kind="GPULabelsDiffer")], "20m"),
    silent("CachewarmGPUNotVisible", "restart: the driver answers again",
           [condition("1x10 stale 0x30")], "20m"),

    fires("CachewarmNodeDiskOverBudget", "two bundles do not fit",
          refused("_x5 2x60"), "40m", "2", namespace="cachewarm-system", pod="agent-a",
          node="a"),
    fires("CachewarmNodeDiskOverBudget", "the fetch is tried again",
          refused("_x5 1x9 0 1x9 0 1x60"), "40m", "1", namespace="cachewarm-system",
          pod="agent-a", node="a"),
    silent("CachewarmNodeDiskOverBudget", "healthy", refused("0x60"), "40m"),
    silent("CachewarmNodeDiskOverBudget", "healthy: the limit is used up and every bundle fits",
           [*refused("0x60"), *disk("120x60", "100x60")], "40m"),
    silent("CachewarmNodeDiskOverBudget", "the node is too small for its warmups since yesterday",
           refused("1x2000"), "1900m"),
    silent("CachewarmNodeDiskOverBudget", "restart: an eviction makes room",
           refused("1x10 stale 0x60"), "40m"),

    fires("CachewarmBundleQuarantined", "one of three nodes",
          [quarantine("2x30"), quarantine("0x30", "b"), quarantine("0x30", "c")], "20m", "33.33%",
          namespace="cachewarm-system", reason="VerifyFailed"),
    silent("CachewarmBundleQuarantined", "healthy", [quarantine("0x30"), quarantine("0x30", "b")],
           "20m"),
    silent("CachewarmBundleQuarantined", "one of a hundred nodes",
           [quarantine("1x30")] + [quarantine("0x30", f"n{i}") for i in range(99)], "20m"),
    silent("CachewarmBundleQuarantined", "restart: the quarantine ends",
           [quarantine("1x10 stale 0x30"), quarantine("0x30", "b")], "20m"),

    fires("CachewarmStoreUnreachable", "nothing is read any more",
          [store("OK", "100x60"), store("UNAVAILABLE", "_x10 1+1x60")], "40m", "100%",
          namespace="cachewarm-system"),
    fires("CachewarmStoreUnreachable", "the credentials are denied from the first call on",
          [store("PERMISSION_DENIED", "1+1x60")], "40m", "100%", namespace="cachewarm-system"),
    silent("CachewarmStoreUnreachable", "healthy",
           [store("OK", "0+10x60"), store("NOT_FOUND", "0+20x60"), store("UNAVAILABLE", "0+2x60")],
           "40m"),
    silent("CachewarmStoreUnreachable", "three calls",
           [store("UNAVAILABLE", "_x25 1+1x2 3x60")], "40m"),
    silent("CachewarmStoreUnreachable", "restart: old failures do not count",
           [store("UNAVAILABLE", "500x10 stale"), store("OK", "9x10 stale _x2 1+1x60")], "40m"),

    fires("CachewarmPodHeldPastDeadline", "two pods",
          [of_warmup("cachewarm_pods_held_past_deadline", "0x9 2x30")], "15m", "2", **WARMUP),
    silent("CachewarmPodHeldPastDeadline", "healthy",
           [of_warmup("cachewarm_pods_held_past_deadline", "0x30"),
            of_warmup("cachewarm_pods_held", "9x30")], "15m"),
    silent("CachewarmPodHeldPastDeadline", "healthy: released with the second attempt",
           [of_warmup("cachewarm_pods_held_past_deadline", "0x9 1 0x30")], "15m"),
    silent("CachewarmPodHeldPastDeadline", "restart: the next leader releases them",
           [of_warmup("cachewarm_pods_held_past_deadline", "0x8 1 stale"),
            of_warmup("cachewarm_pods_held_past_deadline", "_x10 0x30", pod="operator-2")], "15m"),

    fires("CachewarmPodsReleasedAtDeadline", "five of six pods",
          [releases("ReleasedAtDeadline", "_x9 1+1x4 5x90"), releases("ReleasedWarm", "_x9 1x90")],
          "60m", "83.33%", **WARMUP),
    silent("CachewarmPodsReleasedAtDeadline", "healthy",
           [releases("ReleasedWarm", "_x9 1+1x9 10x90"),
            releases("ReleasedAtDeadline", "_x9 1x90")], "60m"),
    silent("CachewarmPodsReleasedAtDeadline", "four pods",
           [releases("ReleasedAtDeadline", "_x9 1+1x3 4x90")], "60m"),
    silent("CachewarmPodsReleasedAtDeadline", "restart: the releases of the old leader count",
           [releases("ReleasedWarm", "_x5 1+1x8 9x5 stale"),
            releases("ReleasedWarm", "_x20 1x90", pod="operator-2"),
            releases("ReleasedAtDeadline", "_x20 1+1x4 5x90", pod="operator-2")], "60m"),

    fires("CachewarmBuildFailing", "every build",
          [builds("BuilderCrashed", "_x5 1x90"), builds("BuilderTimeout", "_x9 1x90")], "30m",
          "100%", **LLAMA_ON_CPU),
    silent("CachewarmBuildFailing", "healthy",
           [builds("Captured", "_x9 1+1x3 4x90"), builds("BuilderLost", "_x5 1x90")], "30m"),
    silent("CachewarmBuildFailing", "one failure", [builds("BuilderCrashed", "_x5 1x90")], "30m"),
    silent("CachewarmBuildFailing", "restart: the failures are of the day before",
           [builds("BuilderCrashed", "1+1x5 6x600 stale"), builds("Captured", "_x900 1x90")],
           "980m"),

    fires("CachewarmBundleSuspended", "one bundle",
          [of_warmup("cachewarm_suspended_bundles", "1x30")], "20m", "1", **WARMUP),
    silent("CachewarmBundleSuspended", "healthy",
           [of_warmup("cachewarm_suspended_bundles", "0x30")], "20m"),
    silent("CachewarmBundleSuspended", "restart: the next leader finds it replaced",
           [of_warmup("cachewarm_suspended_bundles", "1x9 stale"),
            of_warmup("cachewarm_suspended_bundles", "_x9 0x30", pod="operator-2")], "17m"),

    fires("CachewarmHitRateLow", "nine misses and a hit",
          [starts("miss", "_x9 1+1x8 9x90"), starts("hit", "_x9 1x90")], "60m", "10%", **WARMUP),
    fires("CachewarmHitRateLow", "ten misses, one by one",
          [starts("miss", "_x9 1+1x9 10x90")], "60m", "0%", **WARMUP),
    silent("CachewarmHitRateLow", "healthy",
           [starts("hit", TOTAL), starts("cold", "0x9 1+1x9 10x90")], "60m"),
    silent("CachewarmHitRateLow", "healthy: partial starts use the bundle",
           [starts("partial", "_x9 1+1x9 10x90"), starts("miss", "_x9 1x90")], "60m"),
    silent("CachewarmHitRateLow", "a first rollout without a bundle",
           [starts("builder", "_x9 1x90"), starts("cold", "_x9 1+1x30 31x90")], "60m"),
    silent("CachewarmHitRateLow", "nine misses", [starts("miss", "_x9 1+1x8 9x90")], "60m"),
    silent("CachewarmHitRateLow", "restart: only misses since the leader changed",
           [starts("hit", "0x5 1+1x9 10x9 stale"), starts("hit", "_x30 10x90", pod="op-2"),
            starts("miss", "0x24 stale"), starts("miss", "_x30 1+1x4 5x90", pod="op-2")], "75m"),

    fires("CachewarmHollowOrInertStarts", "two of six",
          [starts("inert", "_x9 1x90"), starts("hollow", "_x9 1x90"),
           starts("hit", "_x9 1+1x3 4x90")], "60m", "33.33%", **WARMUP),
    silent("CachewarmHollowOrInertStarts", "healthy",
           [starts("hit", "_x9 1+1x9 10x90"), starts("inert", "_x9 1x90")], "60m"),
    silent("CachewarmHollowOrInertStarts", "four starts",
           [starts("inert", "_x9 1+1x3 4x90")], "60m"),
    silent("CachewarmHollowOrInertStarts", "restart: the hits before it count",
           [starts("hit", TOTAL), starts("hollow", "_x40 1x90", pod="operator-2")], "75m"),
]


def expected(case):
    """The alert as promtool expects it: labels and annotations with their templates filled in."""
    if case.labels is None:
        return []
    rule = alerts()[case.alert]
    annotations = {}
    for name, text in rule["annotations"].items():
        text = re.sub(r"\{\{ \$labels\.(\w+) \}\}",
                      lambda label: case.labels.get(label[1], ""), text)
        annotations[name] = re.sub(r"\{\{ \$value[^}]*\}\}", case.share, text)
    return [{"exp_labels": {**case.labels, **rule["labels"]}, "exp_annotations": annotations}]


def run_tests(promtool, tmp_path, test):
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m",
                                    "tests": [{"interval": "1m", **test}]}))
    promtool("test", "rules", file)


def test_rules_are_valid(promtool):
    output = promtool("check", "rules", RULES)
    assert "SUCCESS" in output and "duplicate" not in output


def test_rules_read_only_exported_metrics_and_labels():
    rules = [rule for group in groups() for rule in group["rules"]]
    recorded = [rule["record"] for rule in rules if "record" in rule]
    for rule in rules:
        assert not list(exported.problems_of(rule["expr"], recorded)), rule


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.title}")
def test_alert_fires_only_on_its_case(promtool, tmp_path, case):
    run_tests(promtool, tmp_path, {
        "input_series": [{"series": name, "values": values} for name, values in case.series],
        "alert_rule_test": [{"alertname": case.alert, "eval_time": case.at,
                             "exp_alerts": expected(case)}]})


def test_every_alert_has_cases_that_fire_it_and_that_do_not():
    for name in alerts():
        cases = [case for case in CASES if case.alert == name]
        assert any(case.labels is not None for case in cases), name
        for word in ("healthy", "restart"):
            assert any(case.labels is None and case.title.startswith(word) for case in cases), name


# A builder, one cold start and nine warm ones. The second leader continues the totals of the first,
# and has counted two hits before its first scrape.
COUNTED = [starts("builder", "0x2 1x11 stale"), starts("builder", "_x109 1x99", pod="operator-2"),
           starts("cold", "0x3 1x10 stale"), starts("cold", "_x109 1x99", pod="operator-2"),
           starts("hit", "0x4 1+1x4 5x5 stale"),
           starts("hit", "_x109 7+1x2 9x90", pod="operator-2"),
           starts("partial", "0x14 stale"), starts("partial", "_x109 0x99", pod="operator-2"),
           of_warmup("cachewarm_saved_seconds_total", "0x4 20+20x4 100x5 stale", gpu_type="cpu"),
           of_warmup("cachewarm_lost_seconds_total", "0x4 7x10 stale", gpu_type="cpu"),
           of_warmup("cachewarm_saved_seconds_total", "_x109 100.5x99", "operator-2",
                     gpu_type="cpu"),
           of_warmup("cachewarm_lost_seconds_total", "_x109 7x99", "operator-2", gpu_type="cpu")]
OF_LLAMA = '{namespace="team",warmup="llama"}'


@pytest.mark.parametrize("at", ["112m", "180m", "300m"])
@pytest.mark.parametrize("expression,value", [
    ("namespace_warmup:cachewarm_hits:ratio6h", 0.9),
    ("namespace_warmup:cachewarm_partials:ratio6h", 0),
    ("sum by (namespace, warmup) "
     "(namespace_warmup_gpu_type_result:cachewarm_pod_starts:increase6h)", 11),
    ("namespace_warmup:cachewarm_net_saved_seconds:increase6h", 93.5),
])
def test_totals_are_exact_when_the_leader_changes(promtool, tmp_path, expression, value, at):
    name = re.fullmatch(r"namespace_\S+", expression)
    run_tests(promtool, tmp_path, {
        "input_series": [{"series": series, "values": values} for series, values in COUNTED],
        "promql_expr_test": [{
            "expr": expression, "eval_time": at,
            "exp_samples": [{"labels": (name[0] if name else "") + OF_LLAMA, "value": value}]}]})


# The interval between samples is one minute; the rules cover 6 hours.
@pytest.mark.parametrize("values,at,hits", [
    ("0x10 3x700", "600m", 0),  # before the window
    ("5x700", "30m", 5),  # the first scrape came late
    ("0x100 4x200 9x400", "500m", 5),  # partly before the window
    ("500x400 stale _x5 3x300", "500m", 3),  # the warmup was deleted and created again
    ("0x300 6x100", "420m", 6),  # no operator for 18 minutes
], ids=["before", "first scrape", "partly", "new warmup", "no operator"])
def test_hits_of_the_window_are_counted(promtool, tmp_path, values, at, hits):
    series, _ = starts("hit", "")
    run_tests(promtool, tmp_path, {
        "input_series": [{"series": series, "values": values}],
        "promql_expr_test": [{
            "expr": "namespace_warmup_gpu_type_result:cachewarm_pod_starts:increase6h",
            "eval_time": at, "exp_samples": [{
                "labels": "namespace_warmup_gpu_type_result:cachewarm_pod_starts:increase6h"
                          '{namespace="team",warmup="llama",gpu_type="cpu",result="hit"}',
                "value": hits}]}]})


def test_a_gap_in_the_scrapes_counts_nothing_twice(promtool, tmp_path):
    series, values = starts("hit", "100x60 _x90 100x60")
    run_tests(promtool, tmp_path, {
        "input_series": [{"series": series, "values": values}],
        "promql_expr_test": [{
            "expr": "namespace_warmup_gpu_type_result:cachewarm_pod_starts:increase6h",
            "eval_time": "500m", "exp_samples": [{
                "labels": "namespace_warmup_gpu_type_result:cachewarm_pod_starts:increase6h"
                          '{namespace="team",warmup="llama",gpu_type="cpu",result="hit"}',
                "value": 0}]}]})


def test_chart_installs_the_rules_file(helm, rendered):
    assert not [key for key in rendered if key[0] == "PrometheusRule"]
    rule = helm.template("--set", "metrics.rules.enabled=true", "--set",
                         "metrics.rules.labels.release=prom")["PrometheusRule", "cachewarm"]
    assert rule["spec"] == {"groups": groups()}
    assert rule["metadata"]["labels"]["release"] == "prom"


def test_every_alert_has_a_runbook():
    pages = {page.stem: page.read_text() for page in RUNBOOKS.glob("*.md")}
    assert sorted(pages) == sorted(alerts())
    for name, text in pages.items():
        url = alerts()[name]["annotations"]["runbook_url"]
        assert url.endswith(f"/blob/main/docs/runbooks/{name}.md")
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        assert headings == [name, "Symptom", "Meaning", "Check", "Remedy"], name
        assert alerts()[name]["annotations"]["summary"] in text, name


def test_documentation_lists_every_alert_and_only_recorded_rules():
    text = (ROOT / "docs/monitoring.md").read_text()
    listed = re.findall(r"^\| \[(\w+)\]\(runbooks/(\w+)\.md\) \| (\w+) \|", text, re.MULTILINE)
    assert listed == [(name, name, rule["labels"]["severity"]) for name, rule in alerts().items()]
    recorded = {rule.get("record") for group in groups() for rule in group["rules"]}
    named = set(re.findall(r"`(\w+:cachewarm_\w+:\w+)`", text))
    assert len(named) >= 5 and named <= recorded


def queries_of(page):
    """The queries in the code blocks of a page: one per line, unless a line continues another."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(),
                                      re.MULTILINE | re.DOTALL):
        if not language and re.search(r"^[a-z_0-9., ()]*cachewarm_\w+", block):
            yield from re.sub(r"\n/", " /", block).strip().splitlines()


def test_queries_of_the_documentation_are_valid(promtool, tmp_path):
    queries = [query for page in (ROOT / "docs/monitoring.md", *RUNBOOKS.glob("*.md"))
               for query in queries_of(page)]
    assert len(queries) >= 8
    for query in queries:
        assert not list(exported.problems_of(query)), query
    rules = [{"record": f"query:{i}", "expr": query} for i, query in enumerate(queries)]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    promtool("check", "rules", file)
