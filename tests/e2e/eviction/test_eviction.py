# SPDX-License-Identifier: Apache-2.0
"""Trees leave a node's disk when no pod can have them mounted, and not before."""

from pathlib import Path

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.compiler import BUNDLE_BYTES, CACHE, IMAGE, compiler
from harness.kubectl import Kubectl
from harness.product import Product, configuration
from harness.steps import warm_up
from harness.waiting import wait_for
from harness.warmup import Warmup

NODE = "node-a"
ROOT = "/var/lib/cachewarm"
CONTAINER = "server"


def trees(cluster: Cluster) -> set[str]:
    return {each.name for each in cluster.on_disk(NODE, f"{ROOT}/.gen").iterdir()}


def link(cluster: Cluster, kubectl: Kubectl, name: str, uid: str) -> Path:
    return cluster.on_disk(NODE, f"{ROOT}/{kubectl.namespace}/{name}/{uid}/image")


def active(cluster: Cluster, kubectl: Kubectl, warmup: Warmup) -> str:
    return link(cluster, kubectl, warmup.name, warmup.uid).readlink().name


def root_status(kubectl: Kubectl) -> dict:
    return kubectl.get("nodecache", NODE)["status"]["node"]["root"]


@pytest.fixture
def server():
    return compiler("evicted", (NODE,), size=BUNDLE_BYTES)


def roll(kubectl: Kubectl, cluster: Cluster, name: str, warmup: Warmup, number: int) -> str:
    """Another image, so that another bundle is built and activated; returns its generation."""
    before = active(cluster, kubectl, warmup)
    tag = f"evict-{number}"
    cluster.another_tag(IMAGE, tag)
    image = f"localhost/busybox:{tag}"
    kubectl.run("set", "image", f"deployment/{name}", f"{CONTAINER}={image}")
    kubectl.run("rollout", "status", f"deployment/{name}", "--timeout=300s", seconds=320)
    wait_for(
        f"the bundle of {image}",
        lambda: any(bundle.get("image") == image for bundle in warmup.bundles),
        240,
        kubectl,
    )
    wait_for(
        f"another generation than {before}",
        lambda: active(cluster, kubectl, warmup) != before,
        120,
        kubectl,
    )
    return active(cluster, kubectl, warmup)


def test_trees_of_a_deleted_warmup_go_with_its_last_pod(
    kubectl: Kubectl, product: Product, cluster: Cluster, server
):
    warmup = warm_up(kubectl, server, caches=[CACHE])
    uid, tree = warmup.uid, active(cluster, kubectl, warmup)
    pod = pods.wait_ready(kubectl, server.name, 1, 60)[0]
    kubectl.delete("cachewarmup", server.name)
    offered = wait_for(
        "the agent offers the tree",
        lambda: [
            each
            for each in kubectl.get("nodecache", NODE)["status"].get("evictable", [])
            if each["generation"] == tree
        ],
        120,
        kubectl,
    )
    assert "unlinkedTime" not in offered[0], "its link still leads to it"
    assert kubectl.execute(pods.name(pod), "ls", "/var/cache/cachewarm")
    assert tree in trees(cluster)

    kubectl.scale("deployment", server.name, 0)
    wait_for("the tree is gone", lambda: tree not in trees(cluster), 180, kubectl)
    place = cluster.on_disk(NODE, f"{ROOT}/{kubectl.namespace}")
    wait_for("nothing is left of the namespace", lambda: not place.exists(), 60, kubectl)
    records = cluster.on_disk(NODE, f"{ROOT}/.state/links")
    assert not [each for each in records.iterdir() if each.name.startswith(uid)]
    trash = cluster.on_disk(NODE, f"{ROOT}/.trash")
    wait_for("the trash is empty", lambda: not list(trash.iterdir()), 60, kubectl)


def test_rollouts_beyond_the_limit_evict_the_oldest_tree_that_no_pod_mounts(
    kubectl: Kubectl, product: Product, cluster: Cluster, server
):
    # Room for about three trees of this warmup beside what other tests left on the node.
    used = root_status(kubectl).get("usedBytes", 0)
    limit = used + 4 * BUNDLE_BYTES
    product.install(configuration(byteLimit=limit))
    try:
        warmup = warm_up(kubectl, server, caches=[CACHE], retain=8)
        generations = [active(cluster, kubectl, warmup)]
        for number in range(1, 7):
            generations.append(roll(kubectl, cluster, server.name, warmup, number))
            assert generations[-1] in trees(cluster), "mounted by the running pod"
            assert root_status(kubectl).get("usedBytes", 0) <= limit
        wait_for(
            "the oldest generation is evicted",
            lambda: generations[0] not in trees(cluster),
            180,
            kubectl,
        )
        assert generations[-1] in trees(cluster)
        assert root_status(kubectl)["evictedBytes"] > 0
        kept = [each in trees(cluster) for each in generations]
        assert kept == sorted(kept), f"a newer tree was evicted before an older one: {kept}"
    finally:
        product.install(configuration())


def test_a_superseded_tree_stays_as_long_as_a_pod_mounts_it(
    kubectl: Kubectl, product: Product, cluster: Cluster, server
):
    warmup = warm_up(kubectl, server, caches=[CACHE], retain=0)
    first = active(cluster, kubectl, warmup)
    pod = pods.wait_ready(kubectl, server.name, 1, 60)[0]
    # A pod that the rollout does not replace.
    kubectl.patch("pod", pods.name(pod), {"metadata": {"labels": {"app": "detached"}}})
    roll(kubectl, cluster, server.name, warmup, 9)
    wait_for(
        "the agent offers the first tree",
        lambda: any(
            each["generation"] == first
            for each in kubectl.get("nodecache", NODE)["status"].get("evictable", [])
        ),
        120,
        kubectl,
    )
    confirmed = kubectl.get("nodecache", NODE)["spec"].get("evict", [])
    assert not [each for each in confirmed if each["generation"] == first]
    assert first in trees(cluster)
    kubectl.kill_pod(pods.name(pod))
    wait_for("the first tree is evicted", lambda: first not in trees(cluster), 180, kubectl)
