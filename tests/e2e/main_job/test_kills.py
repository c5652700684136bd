# SPDX-License-Identifier: Apache-2.0
"""Any program is killed at any time: the warmup converges, with one builder per key, and no pod
fails because of cachewarm."""

import os
import re
import threading

from harness import pods
from harness.availability import Watched
from harness.cluster import NODES, Cluster
from harness.compiler import CACHE, IMAGE, assert_warm, compiler
from harness.kubectl import Kubectl, KubectlError
from harness.product import LEASE, Product
from harness.steps import accept, replace
from harness.storm import Storm, seed_of_the_day
from harness.waiting import holds_for, wait_for
from harness.warmup import Warmup, events

KILLS = int(os.environ.get("KILLS", "20"))
REPLICAS = len(NODES)
# A compile that is long enough for kills in the middle of it.
SERVER = compiler("battered", seconds=15)
SERVER.one_per_node = True
SERVER.strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
SEED = int(os.environ.get("KILL_SEED") or seed_of_the_day())


class BuilderLog:
    """Every (key, attempt, pod) that began to build, by status.builders, looked at all the time.
    Without a node an entry names the held pod that was released for it: another one may be first.
    """

    def __init__(self, warmup: Warmup):
        self._warmup = warmup
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seen: set[tuple[str, int, str]] = set()

    def __enter__(self) -> "BuilderLog":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join(timeout=60)

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            try:
                for builder in self._warmup.builders:
                    if builder.get("node"):
                        entry = (builder["key"], builder["attempt"], builder["podUID"])
                        self.seen.add(entry)
            except KubectlError:
                continue


def settle(kubectl: Kubectl, warmup: Warmup, bundles: int) -> list[dict]:
    running = pods.wait_ready(kubectl, SERVER.name, REPLICAS, 400)
    warmup.wait_bundles(bundles, 300)
    warmup.wait_warm(300)
    return running


def failures(kubectl: Kubectl) -> list[str]:
    """Events about pods that failed to start. The token volume of every pod, kube-api-access, may
    be late in a new namespace: kubelet waits for kube-root-ca."""
    bad = {"Failed", "BackOff", "FailedCreate", "FailedMount", "FailedCreatePodSandBox"}
    return [
        f"{event['reason']}: {event.get('note', '')}"
        for event in events(kubectl)
        if event.get("reason") in bad
        and not re.search("kube-root-ca|kube-api-access", event.get("note", ""))
    ]


def roll(kubectl: Kubectl, cluster: Cluster) -> None:
    image = cluster.another_tag(IMAGE, "next")
    kubectl.run("set", "image", f"deployment/{SERVER.name}", f"server={image}")


def test_warmup_converges_while_all_programs_are_killed(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    print(f"KILL_SEED={SEED}")
    gate = {"mode": "Hold", "maxHoldSeconds": 900}
    warmup = accept(kubectl, SERVER, gate=gate, caches=[CACHE])
    with BuilderLog(warmup) as log, Storm(product, KILLS, SEED) as storm:
        kubectl.scale("deployment", SERVER.name, REPLICAS)
        settle(kubectl, warmup, bundles=2)

        cluster.verb("registry-down")
        roll(kubectl, cluster)
        holds_for("nothing fails", lambda: not failures(kubectl), 30)
        cluster.verb("registry-up")
        rolled = f"deployment/{SERVER.name}"
        kubectl.run("rollout", "status", rolled, "--timeout=900s", seconds=920)
        settle(kubectl, warmup, bundles=4)

        cluster.verb("apiserver-restart")
        warmup.wait_admission(SERVER.pod("probe"))
        node = 0
        while not storm.over:
            target = NODES[node % len(NODES)]
            (old,) = (p for p in pods.of(kubectl, SERVER.name) if pods.node(p) == target)
            assert_warm(kubectl, replace(kubectl, old))
            node += 1
        product.wait_ready()
        for pod in settle(kubectl, warmup, bundles=4):
            assert_warm(kubectl, pod)

    assert storm.operators_killed == storm.agents_killed == KILLS
    builders_per_key: dict[str, set[str]] = {}
    for key, _, uid in log.seen:
        builders_per_key.setdefault(key, set()).add(uid)
    assert len(builders_per_key) == 4
    assert all(len(uids) == 1 for uids in builders_per_key.values()), log.seen
    assert all(builder["state"] == "Captured" for builder in warmup.builders), warmup.builders
    assert failures(kubectl) == []
    assert all(pods.restarts(pod) == 0 for pod in pods.of(kubectl, SERVER.name))


def test_stopping_leader_releases_its_lease(kubectl: Kubectl, product: Product):
    leader = wait_for("an operator leads", product.leader, 60, product.kubectl)
    before = product.lease_holder()
    # A candidate that takes an expired Lease overwrites the previous holder's name.
    with Watched(product.kubectl, "lease", LEASE, "spec.holderIdentity") as holders:
        product.kubectl.delete("pod", leader, "--wait=false")
        wait_for("it is given back", lambda: "" in holders.distinct, 60, product.kubectl)
    wait_for(
        "another operator leads",
        lambda: product.lease_holder() not in ("", before),
        60,
        product.kubectl,
    )
    product.wait_ready()
