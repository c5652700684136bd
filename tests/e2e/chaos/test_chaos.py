# SPDX-License-Identifier: Apache-2.0
"""Kills, edits, deletes and refuses at random for CHAOS_SECONDS. An observer with the API server's
audit log checks that no pod is stuck, no key is built twice at once, no bound pod changes and none
fails. Afterwards every pod starts before the test puts anything right, and then everything
converges. `make chaos`; SEED repeats the choices."""

import json
import os
import time

import pytest
from harness import pods
from harness.api import Api
from harness.chaos.scene import LONGEST_HOLD, Scene
from harness.chaos.storm import Chaos
from harness.chaos.observer import Observer
from harness.cluster import Cluster
from harness.kubectl import Kubectl
from harness.product import Product
from harness.steps import add_pod, assert_hit
from harness.storm import seed_of_the_day
from harness.waiting import holds_for

SECONDS = float(os.environ.get("CHAOS_SECONDS", "600"))
SEED = int(os.environ.get("CHAOS_SEED") or seed_of_the_day())
# A build that failed often is tried again after 6 minutes, and then has to be distributed.
CONVERGE_SECONDS = 600


@pytest.mark.slow
def test_cluster_converges_after_random_failures(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    print(f"\nCHAOS_SEED={SEED} CHAOS_SECONDS={SECONDS:.0f}", flush=True)
    scene = Scene(cluster, product, kubectl)
    scene.set_up()
    chaos = Chaos(scene, SECONDS, SEED)
    api = Api(cluster.state / "admin.kubeconfig")
    log = cluster.state / "audit" / "audit.log"
    began = time.time()
    with Observer(log, api, LONGEST_HOLD, scene.excuses) as observer:
        try:
            chaos.run()
            ended = time.time()
            scene.wait_started(CONVERGE_SECONDS)
            started = time.time() - ended
            scene.put_right()
            scene.wait_converged(CONVERGE_SECONDS)
            converged = time.time() - ended
            holds_for("no pod is held", lambda: not observer.now_held, 3)
            assert_hit(kubectl, add_pod(kubectl, "torch"))
        finally:
            report = {
                "seed": SEED,
                "seconds": SECONDS,
                "done": dict(chaos.done.most_common()),
                "missed": dict(chaos.missed.most_common()),
                "excused seconds": round(scene.excuses.within(began, time.time()), 1),
                "seen": observer.summary,
                "violations": observer.violations,
            }
            print(json.dumps(report, indent=1), flush=True)
            scene.tenant.tear_down()
    print(f"started after {started:.0f} s, converged after {converged:.0f} s", flush=True)
    assert not observer.violations, observer.violations
    assert observer.summary["held"] > SECONDS / 60, "hardly a pod was held: nothing was tried"
    assert observer.summary["releases"] > SECONDS / 60, "hardly a release was logged"
    assert observer.summary["started"] > SECONDS / 60, "kubelets reported hardly a start"
    assert observer.summary["builders"] > SECONDS / 60, "hardly anything was built"
    assert all(pods.ready(pod) for pod in scene.pods())
