#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures an operator in a large cluster: `make bench-scale`, see docs/bench/scheduling.md.

A control plane of the test cluster, one real node for the operators, and kwok nodes whose agents
are played by load/. Prints one line a figure and writes all of them to build/bench/scale.json.
Leaves no cluster behind.
"""

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import load, metrics  # noqa: E402
from harness.cluster import REPOSITORY, Cluster  # noqa: E402
from harness.gates import small_pod  # noqa: E402
from harness.kubectl import Kubectl  # noqa: E402
from harness.load import KWOK, TOLERATIONS, Load  # noqa: E402
from harness.product import Product, configuration  # noqa: E402
from harness.sleeper import Sleeper  # noqa: E402
from harness.waiting import wait_for  # noqa: E402
from harness.warmup import Warmup, warmup_for  # noqa: E402

NODE = "node-a"
READS = {"get", "list", "watch"}
RSS_MB_MAX = 128
# How long nothing may be written until the cluster counts as steady, and how long it is watched. A
# pod without a readiness probe is written about a minute after it has begun to run.
QUIET_SECONDS = 75
STEADY_SECONDS = 60
# Every node of a warmup prepares its directory first, and the API server of the test cluster takes
# about 100 such writes a second.
INJECTING_SECONDS = 3600


class Scale:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.cluster = Cluster()
        self.product = Product(self.cluster)
        self.kubectl: Kubectl = self.cluster.kubectl().within("scale")
        self.figures: dict[str, object] = {}

    def note(self, name: str, value: object) -> None:
        self.figures[name] = value
        print(f"{name}: {value}", flush=True)

    # ---- what is there ---------------------------------------------------------------------------

    def install(self) -> None:
        self.cluster.up(NODE)
        turns = {"nodesMax": self.options.fetch_nodes}
        self.product.install(configuration(fetch=turns, logLevel="info"), facts={})
        self.product.scale_operator(1)
        for namespace in ("scale", "none", "fifty"):
            self.kubectl.run("create", "namespace", namespace)

    def workload(self, name: str, replicas: int, pool: int | None = None) -> dict:
        where = KWOK if pool is None else {**KWOK, "pool": f"pool-{pool}"}
        spec = {"nodeSelector": where, "tolerations": TOLERATIONS}
        thing = Sleeper(name=name, spec=spec).deployment()
        thing["spec"]["replicas"] = replicas
        return thing

    def warm_up(self, kubectl: Kubectl, names: list[str], pools: int = 0) -> None:
        """Deployments of one pod each, made once their warmups are accepted: a pod that was there
        before has no cache directory and builds nothing. With pools, they take them in turns."""
        for number, name in enumerate(names):
            deployment = self.workload(name, 0, number % pools if pools else None)
            # Pods of Jobs end at once on a kwok node.
            how = {"gate": {"mode": "Auto"}, "compile": {"builder": "FirstPod"}}
            kubectl.apply(deployment, warmup_for(deployment, **how))
        for name in names:
            Warmup(kubectl, name).wait_injecting(INJECTING_SECONDS)
            kubectl.scale("deployment", name, 1)

    # ---- figures ---------------------------------------------------------------------------------

    def operator(self) -> Path:
        """/proc of the one operator process."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"cachewarm-operator"):
                found.append(path)
        assert len(found) == 1, f"operators: {found}"
        return found[0]

    def megabytes(self) -> dict[str, float]:
        lines = (self.operator() / "status").read_text().splitlines()
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        return {
            name: round(int(fields[key].split()[0]) * 1024 / 1e6, 1)
            for name, key in (("now", "VmRSS"), ("peak", "VmHWM"))
        }

    def cpu_seconds(self) -> float:
        fields = (self.operator() / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def requests(self) -> dict[tuple[str, str], float]:
        counts: dict[tuple[str, str], float] = {}
        for sample in metrics.parse(self.product.metrics("operator")):
            if sample.name == "cachewarm_api_requests_total":
                key = (sample.labels["verb"], sample.labels["resource"])
                counts[key] = counts.get(key, 0) + sample.value
        return counts

    def writes(self) -> dict[str, int]:
        """By resource, without the Lease and dry runs, which every warmup asks for now and then."""
        counts: dict[str, int] = {}
        for (verb, resource), value in self.requests().items():
            if verb not in READS and resource != "leases":
                counts[f"{verb} {resource}"] = int(value)
        made = counts.pop("create pods", 0) - self.dry_runs()
        return {**counts, "create pods": made} if made > 0 else counts

    def dry_runs(self) -> int:
        """Counts pod creates by dry run: a dry run is two creates while pods are allowed."""
        samples = metrics.parse(self.product.metrics("operator"))
        counter = "cachewarm_admission_dry_runs_total"
        return 2 * int(sum(s.value for s in samples if s.name == counter))

    def wait_quiet(self, limit: float) -> float:
        """Until nothing is written any more; when the last write was seen."""
        last, since = self.writes(), time.monotonic()
        deadline = since + limit
        while time.monotonic() < since + QUIET_SECONDS:
            assert time.monotonic() < deadline, f"still writing: {last}"
            time.sleep(2)
            now = self.writes()
            if now != last:
                last, since = now, time.monotonic()
        return since

    # ---- the run ---------------------------------------------------------------------------------

    def create_latency(self) -> None:
        """Pod creates (dry runs) in a namespace with 50 warmups and in one without, by turns."""
        fifty = self.kubectl.within("fifty")
        names = [f"w-{i:02d}" for i in range(50)]
        self.warm_up(fifty, names)
        rounds = []
        for _ in range(5):
            took = {}
            for namespace in ("none", "fifty"):
                pod = small_pod("probe", {"app": names[-1]})
                took[namespace] = Load(self.cluster, namespace).run(
                    "create", "-count=300", text_in=json.dumps(pod)
                )
            rounds.append(took)
        for what in ("median", "p99"):
            for namespace in ("none", "fifty"):
                value = median(each[namespace][what] for each in rounds)
                self.note(f"create_{what}_ms_{namespace}", round(1000 * value, 2))
            ratio = median(each["fifty"][what] / each["none"][what] for each in rounds)
            self.note(f"create_{what}_ratio", round(ratio, 2))
        fifty.run("delete", "cachewarmup,deployment", "--all", "--wait=false")
        wait_for("they are gone", lambda: not fifty.list("pods"), 120)

    def grow(self) -> None:
        options = self.options
        began = time.monotonic()
        self.cluster.verb("kwok", str(options.nodes), seconds=1800)
        load.wait_agents(self.cluster, options.nodes, 1800)
        self.note("nodes_seconds", round(time.monotonic() - began))
        self.note("rss_mb_nodes", self.megabytes())
        began = time.monotonic()
        names = [f"llama-{i:02d}" for i in range(options.warmups)]
        self.warm_up(self.kubectl, names, options.pools)
        for name in names:
            Warmup(self.kubectl, name).wait_warm(3600)
        self.note("warm_seconds", round(time.monotonic() - began))
        self.note("rss_mb_warm", self.megabytes())
        began = time.monotonic()
        for name in names:
            self.kubectl.scale("deployment", name, options.pods // options.warmups)
        wait_for("all pods run", lambda: self.running() >= options.pods, 3600)
        self.note("pods_seconds", round(time.monotonic() - began))
        quiet = self.wait_quiet(1800)
        self.note("steady_seconds", round(quiet - began))

    def running(self) -> int:
        found = self.kubectl.list("deployments")
        return sum(each["status"].get("readyReplicas", 0) for each in found)

    def costs(self) -> None:
        options = self.options
        requests = self.requests()
        for what, resource, count in (
            ("pod", "pods", options.pods),
            ("node", "nodecaches", options.nodes),
        ):
            total = sum(v for (verb, r), v in requests.items() if r == resource)
            self.note(f"{resource}_requests_per_{what}", round(total / count, 2))
        self.note("requests", {f"{v} {r}": int(n) for (v, r), n in sorted(requests.items())})
        self.note("rss_mb_grown", self.megabytes())

    def steady(self, title: str) -> None:
        before, cpu = self.writes(), self.cpu_seconds()
        time.sleep(STEADY_SECONDS)
        used = self.cpu_seconds() - cpu
        after = self.writes()
        changed = {k: n - before.get(k, 0) for k, n in after.items() if n != before.get(k, 0)}
        self.note(f"{title}_writes", changed)
        self.note(f"{title}_cpu_percent", round(100 * used / STEADY_SECONDS, 1))
        self.note(f"{title}_rss_mb", self.megabytes())

    def resync(self) -> None:
        """A process that has just started lists everything and looks at everything."""
        self.product.scale_operator(0)
        began = time.monotonic()
        self.product.scale_operator(1)
        leads = "cachewarm_leader 1"
        wait_for("it leads", lambda: leads in self.product.metrics("operator"), 120)
        self.note("resync_lead_seconds", round(time.monotonic() - began, 1))
        wait_for("it has looked at everything", self.is_idle, 600)
        self.note("resync_seconds", round(time.monotonic() - began, 1))
        self.note("resync_dry_runs", self.dry_runs())
        self.note("resync_writes", self.writes())
        self.note("resync_rss_mb", self.megabytes())

    def missed(self) -> list[str]:
        """Describes each requirement that does not hold."""
        found = [
            f"{name}: a peak of {value['peak']} MB, and {RSS_MB_MAX} are allowed"
            for name, value in self.figures.items()
            if "rss_mb" in name and value["peak"] > RSS_MB_MAX
        ]
        found += [
            f"{name}: {self.figures[name]}, and nothing is left to write"
            for name in ("steady_writes", "resync_writes", "resynced_writes")
            if self.figures[name]
        ]
        return found

    def is_idle(self) -> bool:
        cpu = self.cpu_seconds()
        time.sleep(2)
        return self.cpu_seconds() - cpu < 0.1

    def run(self) -> None:
        with ExitStack() as ends:
            ends.callback(self.cluster.verb, "down", seconds=600)
            self.install()
            hold = Path(ends.enter_context(tempfile.TemporaryDirectory())) / "hold"
            self.cluster.verb("kwok", "4")
            ends.enter_context(load.agents(self.cluster, hold))
            load.wait_agents(self.cluster, 4)
            self.note("rss_mb_empty", self.megabytes())
            if not self.options.no_create:
                self.create_latency()
            self.grow()
            self.costs()
            self.steady("steady")
            self.resync()
            self.steady("resynced")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10000, help="of workloads; agents not counted")
    parser.add_argument("--warmups", type=int, default=20)
    parser.add_argument(
        "--pools",
        type=int,
        default=4,
        choices=range(5),
        help="the warmups take the nodes of one of so many pools, in turns; 0: each takes all",
    )
    parser.add_argument(
        "--fetch-nodes", type=int, default=1000, help="that may fetch at a time; 32 as shipped"
    )
    parser.add_argument("--no-create", action="store_true", help="leave out the pod creates")
    scale = Scale(parser.parse_args())
    try:
        scale.run()
        if missed := scale.missed():
            sys.exit("missed:\n  " + "\n  ".join(missed))
    finally:
        report = REPOSITORY / "build" / "bench" / "scale.json"
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(json.dumps(scale.figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
