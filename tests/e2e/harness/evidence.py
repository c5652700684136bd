# SPDX-License-Identifier: Apache-2.0
"""Compares what Prometheus reports about the starts of a workload with the pods' own logs: one cold
start that is not a builder's, and warm ones after it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from . import pods
from .cluster import Cluster
from .kubectl import Kubectl
from .model_server import ModelServer
from .product import Product
from .prometheus import Monitoring, documented_query
from .sleeper import Sleeper
from .steps import accept, add_pod, replace, until_ready
from .waiting import wait_for
from .warmup import Warmup

NODES = ("node-a", "node-b")  # of one GPU type and CPU class
# Bytes per second of downloads. The second node gets a bundle of 50 kB or more only after its pod
# has compiled, so that this start is cold and no builder's.
SLOW = "1000"
# The times of pods in the API are whole seconds, and kubelet probes once per second.
SECONDS_PER_START = 1.0
SHARE = 0.1


@dataclass(frozen=True)
class Logged:
    """One start by the log of its pod."""

    result: str  # hit, partial or cold
    seconds: float  # until the server was ready


@dataclass
class Measured:
    """The starts of one workload by the logs of its pods. Shares leave out the builder."""

    warmup: Warmup
    builder: Logged
    cold: Logged
    warm: list[Logged] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """By result, as status.starts has them."""
        found = {"builder": 1, "cold": 1}
        for each in self.warm:
            found[each.result] = found.get(each.result, 0) + 1
        return found

    def share(self, result: str) -> float:
        return self.counts.get(result, 0) / (1 + len(self.warm))

    @property
    def saved_seconds(self) -> float:
        """By the rule of operator/plan/starts/savings.h. Its limit is the median time to the last
        compiled file, here of two starts that compile almost until they are ready."""
        most = (self.builder.seconds + self.cold.seconds) / 2
        return sum(min(self.cold.seconds - each.seconds, most) for each in self.warm)

    @property
    def margin_seconds(self) -> float:
        return max(SHARE * self.saved_seconds, SECONDS_PER_START * len(self.warm))

    def assert_saved(self, reported_seconds: float) -> None:
        logged = self.saved_seconds
        print(f"saved {logged:.1f} s by the pods' logs, {reported_seconds:.1f} s as reported")
        assert logged > 2 * self.margin_seconds, "the model is too small to measure with"
        assert abs(reported_seconds - logged) <= self.margin_seconds, (reported_seconds, logged)


def read_start(kubectl: Kubectl, pod: dict) -> Logged:
    """Waits until a pod of model_server.py is Ready."""
    seen = pods.start(kubectl, until_ready(kubectl, pod, 400))
    assert seen.right, seen
    return Logged("hit" if seen.full_hit else "cold" if seen.cold else "partial", seen.total_s)


def measure(
    kubectl: Kubectl,
    cluster: Cluster,
    server: ModelServer | Sleeper,
    read: Callable[[dict], Logged],
    warm_starts: int,
) -> Measured:
    """Starts the pods one after the other: a builder on one node, a cold one on the other, then
    warm ones. `server` has one pod per node of NODES. `read` waits until a pod is Ready and reads
    its log."""
    warmup = accept(kubectl, server, gate={"mode": "Never"})
    cluster.verb("registry-throttle", SLOW)
    builder = read(add_pod(kubectl, server.name))
    assert builder.result == "cold", builder
    warmup.wait_bundles(1)
    measured = Measured(warmup, builder, read(add_pod(kubectl, server.name)))
    assert measured.cold.result == "cold", measured.cold
    warmup.wait_counted(measured.counts)
    cluster.verb("registry-throttle", "unlimited")
    warmup.wait_warm()
    for _ in range(warm_starts):
        measured.warm.append(read(replace(kubectl, pods.of(kubectl, server.name)[0])))
        warmup.wait_counted(measured.counts)
    print(f"builder {builder}, cold {measured.cold}, warm {measured.warm}")
    return measured


def assert_reported(monitoring: Monitoring, measured: Measured) -> float:
    """Shares are exact, and the saved seconds agree with the logs. Returns the reported seconds."""
    prometheus = monitoring.prometheus
    kubectl = measured.warmup.kubectl
    labels = {"namespace": kubectl.namespace, "warmup": measured.warmup.name}
    of_readme = documented_query("README.md", "The hit rate in Prometheus")
    queries = {
        of_readme: measured.share("hit"),
        "namespace_warmup:cachewarm_hits:ratio6h": measured.share("hit"),
        "namespace_warmup:cachewarm_partials:ratio6h": measured.share("partial"),
    }
    for query, expected in queries.items():
        wait_for(
            f"{expected} is the result of {query}",
            lambda query=query, expected=expected: prometheus.value(query, **labels) == expected,
            30,
            kubectl,
        )
    mine = f'namespace="{kubectl.namespace}",warmup="{measured.warmup.name}"'
    saved, lost = (
        f"sum(max by (gpu_type) (cachewarm_{name}_seconds_total{{{mine}}}))"
        for name in ("saved", "lost")
    )
    rule = "namespace_warmup:cachewarm_net_saved_seconds:increase6h"
    reported = prometheus.value(f"{saved} - {lost}")
    assert reported is not None
    wait_for(
        f"{reported} is the result of {rule}",
        lambda: abs((prometheus.value(rule, **labels) or 0) - reported) < 0.001,
        30,
        kubectl,
    )
    measured.assert_saved(reported)
    return reported


def assert_reported_after_restarts(
    monitoring: Monitoring, product: Product, measured: Measured
) -> None:
    """The same numbers before and after new pods of operator and agents with a new leader; and
    increase() over all that time."""
    before = assert_reported(monitoring, measured)
    leader = product.lease_holder()
    product.restart("operator")
    product.restart("agent")
    wait_for(
        "a new process leads",
        lambda: product.leader() and product.lease_holder() != leader,
        60,
        product.kubectl,
    )
    monitoring.wait_scraped()
    kubectl = measured.warmup.kubectl
    mine = f'namespace="{kubectl.namespace}",warmup="{measured.warmup.name}"'
    served = f'cachewarm_pod_starts_total{{{mine},result="cold",pod="{product.leader()}"}}'
    wait_for(
        "the new leader serves the totals",
        lambda: monitoring.prometheus.query(served),
        60,
        product.kubectl,
    )
    assert abs(assert_reported(monitoring, measured) - before) < 0.001
    _assert_increase(monitoring, measured, before, mine)


def _assert_increase(
    monitoring: Monitoring, measured: Measured, saved_seconds: float, mine: str
) -> None:
    """The usual form. Each leader has series of its own, from 0 on or from the totals that it
    continues. increase() extrapolates by half an interval of the scrapes, hence the tolerance."""
    prometheus = monitoring.prometheus
    query = documented_query("docs/monitoring.md", "The usual form is shorter")
    labels = {
        "namespace": measured.warmup.kubectl.namespace,
        "warmup": measured.warmup.name,
    }
    rate = prometheus.value(query, **labels)
    if measured.share("hit"):
        assert rate is not None and abs(rate - measured.share("hit")) < 0.005, rate
    for result, count in measured.counts.items():
        total = f'sum(increase(cachewarm_pod_starts_total{{{mine},result="{result}"}}[1d]))'
        seen = prometheus.value(total)
        assert seen is not None and abs(seen - count) <= 0.02 * count, (result, seen)
    seconds = {
        name: prometheus.value(f"sum(increase(cachewarm_{name}_seconds_total{{{mine}}}[1d]))") or 0
        for name in ("saved", "lost")
    }
    seen = seconds["saved"] - seconds["lost"]
    assert abs(seen - saved_seconds) <= 0.02 * saved_seconds, (seconds, saved_seconds)
