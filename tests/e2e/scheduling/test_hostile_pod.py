# SPDX-License-Identifier: Apache-2.0
"""A pod that misuses its cache directory costs other workloads of its node nothing."""

from harness import compiler, pods
from harness.cluster import Cluster
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, replace, warm_up
from harness.waiting import wait_for
from harness.warmup import injected

NODE = "node-b"
ROOT = "/var/lib/cachewarm"
CACHE = {"name": "mine", "env": "MY_CACHE", "path": "mine"}
DIRECTORIES = 3000
SPARSE_BYTES = 16_000_000_000_000
# Renames a directory of thousands of directories in a loop, beside a sparse file of 16 TB.
SCRIPT = f"""
mkdir -p "$MY_CACHE/a" && cd "$MY_CACHE" || exit 1
busybox truncate -s {SPARSE_BYTES} sparse.bin || exit 1
busybox seq 1 {DIRECTORIES} | busybox sed 's|^|a/|' | busybox xargs busybox mkdir -p || exit 1
: >/tmp/ready
while :; do busybox mv a b && busybox mv b a || exit 1; done
"""


def hostile() -> Sleeper:
    ready = {"exec": {"command": ["busybox", "test", "-f", "/tmp/ready"]}, "periodSeconds": 1}
    return Sleeper(
        name="hostile",
        replicas=0,
        nodes=(NODE,),
        script=SCRIPT,
        container={"readinessProbe": ready},
    )


def test_hostile_pod_does_not_affect_another_workload_of_its_node(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    agent = product.agent(NODE)
    before = (pods.name(agent), pods.restarts(agent))
    attacker = accept(kubectl, hostile(), caches=[CACHE])
    kubectl.scale("deployment", "hostile", 1)
    (pod,) = pods.wait_ready(kubectl, "hostile", 1, 60)
    assert injected(pod)
    path = f"{ROOT}/{kubectl.namespace}/hostile/{attacker.uid}/image/mine/sparse.bin"
    assert int(cluster.in_node(NODE, "stat", "-L", "-c", "%s", path)) == SPARSE_BYTES

    server = compiler.compiler("beside", (NODE,), seconds=1)
    warmup = warm_up(kubectl, server, caches=[compiler.CACHE])
    (bundle,) = warmup.bundles
    wait_for(
        f"{NODE} has the bundle", lambda: bundle["digest"] in warmup.active_on(NODE), 60, kubectl
    )
    (old,) = pods.of(kubectl, "beside")
    compiler.assert_warm(kubectl, replace(kubectl, old))

    (pod,) = pods.of(kubectl, "hostile")
    assert pods.ready(pod) and pods.restarts(pod) == 0, "the attack ended early"
    agent = product.agent(NODE)
    assert (pods.name(agent), pods.restarts(agent)) == before
