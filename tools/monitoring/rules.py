# SPDX-License-Identifier: Apache-2.0
"""The recording rules and alerts of the chart: the content of charts/cachewarm/files/rules.yaml.
tools/render-manifests writes it. Pure."""
import textwrap
from dataclasses import dataclass

import queries as q

RUNBOOKS = "https://github.com/cachewarm/cachewarm/blob/main/docs/runbooks"
WINDOW = "6h"
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Made by tools/render-manifests from tools/monitoring/rules.py; do not edit.
# Rules for Prometheus. The chart installs them as a PrometheusRule (metrics.rules.enabled); without
# the Prometheus operator, list this file under rule_files. docs/monitoring.md explains them.
"""


@dataclass(frozen=True)
class Record:
    name: str
    expr: str


@dataclass(frozen=True)
class Alert:
    name: str
    expr: str
    lasts: str  # "for" of the rule
    severity: str
    summary: str
    description: str


STARTS = f"namespace_warmup_gpu_type_result:cachewarm_pod_starts:increase{WINDOW}"
SAVED = f"namespace_warmup_gpu_type:cachewarm_saved_seconds:increase{WINDOW}"
LOST = f"namespace_warmup_gpu_type:cachewarm_lost_seconds:increase{WINDOW}"
BUILDS = f"namespace_warmup_gpu_type_reason:cachewarm_builds:increase{WINDOW}"
RELEASES = f"namespace_warmup_reason:cachewarm_gate_releases:increase{WINDOW}"


def of_starts(results, compare="=~"):
    return q.sum_by(q.OF_WARMUP, f'{STARTS}{{result{compare}"{results}"}}')


def total(labels, counter):
    return q.total_increase(counter, labels, WINDOW, before=WINDOW)


def events(labels, counter):
    return q.sum_by(labels, q.events(counter, WINDOW, before=WINDOW))


def records():
    counted = of_starts(q.NOT_COUNTED, "!~")
    return [
        Record(STARTS, total(q.OF_RESULT, "cachewarm_pod_starts_total")),
        Record(SAVED, total(q.OF_TYPE, "cachewarm_saved_seconds_total")),
        Record(LOST, total(q.OF_TYPE, "cachewarm_lost_seconds_total")),
        Record(BUILDS, events(f"{q.OF_TYPE}, reason", "cachewarm_builds_total")),
        Record(RELEASES, events(f"{q.OF_WARMUP}, reason", "cachewarm_gate_releases_total")),
        Record(f"namespace_warmup:cachewarm_hits:ratio{WINDOW}",
               q.share(of_starts("hit", "="), counted)),
        Record(f"namespace_warmup:cachewarm_partials:ratio{WINDOW}",
               q.share(of_starts("partial", "="), counted)),
        Record(f"namespace_warmup:cachewarm_net_saved_seconds:increase{WINDOW}",
               q.difference(q.sum_by(q.OF_WARMUP, SAVED), q.sum_by(q.OF_WARMUP, LOST))),
    ]


def program_alerts():
    """Alerts on the operator and the agents. The namespace is that of the installation."""
    quarantined = "cachewarm_quarantined_bundles"
    # No bundle is refused at the moment in which its fetch is tried again.
    refused, day_before = (
        f"sum without (reason) (max_over_time(cachewarm_refused_bundles[15m]{at}))"
        for at in ("", " offset 1d"))
    calls = q.increase("cachewarm_store_requests_total", "15m")
    failed = q.increase(f'cachewarm_store_requests_total{{code=~"{q.STORE_FAILED}"}}', "15m")
    return [
        Alert("CachewarmOperatorNoLeader", "absent(cachewarm_leader == 1)", "5m", "critical",
              "No replica of the cachewarm operator is the leader.",
              "For 5 minutes no scraped replica of the operator was the leader, or none was"
              " scraped. New pods of warmups are still held, until their deadline, and no bundle is"
              " built or distributed."),
        Alert("CachewarmNoAdmission", "max by (namespace) (cachewarm_admission_mode_info) == 0",
              "10m", "warning",
              "Neither the admission policy nor the webhook of cachewarm is installed.",
              "The operator in namespace {{ $labels.namespace }} finds neither its admission policy"
              " nor its webhook. New pods start without the cache."),
        Alert("CachewarmWebhookCertificateExpiring",
              "min by (namespace) (cachewarm_webhook_certificate_expiry_timestamp_seconds > 0)"
              " - time() < 7 * 86400", "1h", "warning",
              "The certificate of cachewarm's webhook expires in less than a week.",
              "The certificate that the operator in namespace {{ $labels.namespace }} serves"
              " expires in {{ $value | humanizeDuration }}. After that the API server does not call"
              " the webhook, and new pods start without the cache."),
        Alert("CachewarmGPUNotVisible",
              'sum by (namespace) (cachewarm_node_condition{type="GPUNotVisible"}) > 0', "15m",
              "warning",
              "Nodes offer GPUs that the agent of cachewarm cannot see.",
              "{{ $value }} nodes have GPUs according to kubelet, and the agent finds none there."
              " They get no bundle, and pods on them start cold."),
        # A node that is too small for its warmups stays so until somebody acts, so the alert fires
        # for a day only. A limit that is reached while every bundle fits is no fault.
        Alert("CachewarmNodeDiskOverBudget",
              f"{refused} > 0 unless {day_before} > 0", "15m", "warning",
              "A bundle does not fit on the disk of a node.",
              "{{ $value }} bundles of node {{ $labels.node }} (agent {{ $labels.instance }}) do"
              " not fit into byteLimit or the free space of its disk, and their pods start cold"
              " there. The other trees on the node are needed there or mounted by running pods. The"
              " alert ends after a day; the NodeCache shows the reason as long as it holds."),
        Alert("CachewarmBundleQuarantined",
              f"sum by (namespace, reason) (clamp_max({quarantined}, 1))"
              f" / count by (namespace, reason) ({quarantined}) > 0.05", "15m", "warning",
              "More than 5 % of the nodes have a bundle in quarantine.",
              "{{ $value | humanizePercentage }} of the nodes rejected a bundle"
              " ({{ $labels.reason }}) and do not fetch it again until the quarantine ends. Pods on"
              " these nodes start with an older bundle or cold."),
        Alert("CachewarmStoreUnreachable",
              f"{q.share(q.sum_by('namespace', failed), q.sum_by('namespace', calls), 5)} > 0.5",
              "10m", "warning",
              "More than half of the calls to the bundle store fail.",
              "{{ $value | humanizePercentage }} of the calls of agents to the bundle store in the"
              " last 15 minutes could not reach it or were denied. Nodes cannot fetch bundles, and"
              " builders cannot publish them."),
    ]


def warmup_alerts():
    """Alerts on one CacheWarmup. Shares of a few events say nothing, so each has a minimum."""
    built = q.sum_by("namespace, warmup, gpu_type", BUILDS)
    failed = q.sum_by("namespace, warmup, gpu_type", f'{BUILDS}{{reason!="Captured"}}')
    released = q.sum_by(q.OF_WARMUP, RELEASES)
    late = q.sum_by(q.OF_WARMUP, f'{RELEASES}{{reason="ReleasedAtDeadline"}}')
    had = of_starts(q.HAD_BUNDLE)
    overdue = q.sum_by(q.OF_WARMUP, "cachewarm_pods_held_past_deadline")
    return [
        Alert("CachewarmPodHeldPastDeadline", f"{overdue} > 0", "2m", "critical",
              "Pods are held longer than their deadline.",
              "{{ $value }} pods of CacheWarmup {{ $labels.namespace }}/{{ $labels.warmup }} still"
              " have the scheduling gate of cachewarm after their deadline: the operator tries to"
              " release them, and the API server or an admission webhook rejects it."),
        Alert("CachewarmPodsReleasedAtDeadline", f"{q.share(late, released, 5)} > 0.5", "15m",
              "warning",
              "Most held pods of a warmup wait until their deadline.",
              "{{ $value | humanizePercentage }} of the pods of CacheWarmup"
              " {{ $labels.namespace }}/{{ $labels.warmup }} that were released in the last 6 hours"
              " were released at their deadline: they waited for the maximum time, and no node was"
              " warm in time."),
        Alert("CachewarmBuildFailing", f"{q.share(failed, built, 2)} > 0.5", "5m", "warning",
              "Most builds of a warmup fail.",
              "{{ $value | humanizePercentage }} of the builds of CacheWarmup"
              " {{ $labels.namespace }}/{{ $labels.warmup }} for {{ $labels.gpu_type }} in the last"
              " 6 hours failed. Without a bundle its pods start cold."),
        Alert("CachewarmBundleSuspended",
              f"{q.sum_by(q.OF_WARMUP, 'cachewarm_suspended_bundles')} > 0", "15m", "warning",
              "Starts with a bundle of a warmup hung, and no other bundle has replaced it.",
              "{{ $value }} bundles of CacheWarmup {{ $labels.namespace }}/{{ $labels.warmup }} are"
              " suspended, because starts with them hung or their engine refused them. New pods"
              " that would use them start cold."),
        Alert("CachewarmHitRateLow", f"{q.share(of_starts(q.USED_BUNDLE), had, 10)} < 0.5", "30m",
              "warning",
              "Most pods of a warmup do not use the bundle on their node.",
              "Only {{ $value | humanizePercentage }} of the pods of CacheWarmup"
              " {{ $labels.namespace }}/{{ $labels.warmup }} that started with a bundle in the last"
              " 6 hours used it (hit or partial)."),
        Alert("CachewarmHollowOrInertStarts", f"{q.share(of_starts(q.NOT_USABLE), had, 5)} > 0.2",
              "15m", "warning",
              "Pods of a warmup never read the cache, or rebuild its code.",
              "{{ $value | humanizePercentage }} of the pods of CacheWarmup"
              " {{ $labels.namespace }}/{{ $labels.warmup }} that started with a bundle in the last"
              " 6 hours did not read it (inert), or read its index and rebuilt the native code"
              " (hollow)."),
    ]


def alerts():
    return [*program_alerts(), *warmup_alerts()]


def block(key, text, indent):
    """A folded block scalar: line breaks become spaces again when it is read."""
    lines = textwrap.wrap(text, 98 - indent - 2, break_long_words=False, break_on_hyphens=False)
    pad = " " * (indent + 2)
    return [f"{' ' * indent}{key}: >-", *(pad + line for line in lines)]


def lines_of_alert(alert):
    yield f"  - alert: {alert.name}"
    yield from block("expr", alert.expr, 4)
    yield f"    for: {alert.lasts}"
    yield "    labels:"
    yield f"      severity: {alert.severity}"
    yield "    annotations:"
    yield f"      summary: {alert.summary}"
    yield from block("description", alert.description, 6)
    yield f"      runbook_url: {RUNBOOKS}/{alert.name}.md"


def text():
    lines = ["groups:", "- name: cachewarm.rules", "  rules:"]
    for record in records():
        lines += [f"  - record: {record.name}", *block("expr", record.expr, 4)]
    for name, group in (("programs", program_alerts()), ("warmups", warmup_alerts())):
        lines += [f"- name: cachewarm.{name}", "  rules:"]
        for alert in group:
            lines += lines_of_alert(alert)
    return HEAD + "\n".join(lines) + "\n"
