# SPDX-License-Identifier: Apache-2.0
"""Trees leave a node's disk when no pod can have them mounted, and not before."""

import time
from pathlib import Path

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.compiler import BUNDLE_BYTES, CACHE, IMAGE, compiler
from harness.kubectl import Kubectl
from harness.product import Product, configuration
from harness.steps import replace, until_ready, warm_up
from harness.waiting import holds_for, wait_for
from harness.warmup import DIRECTORY, Warmup

NODE = "node-a"
ROOT = "/var/lib/cachewarm"


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
    env = [{"name": "KERNEL_KEY", "value": "0"}]
    return compiler("evicted", (NODE,), size=BUNDLE_BYTES, env=env)


def await_new_mounts(link: Path) -> None:
    """Containers that start from now on count as having mounted the tree that is active now:
    kubelet resolves a mount up to 30 s before the start that it reports."""
    switched = link.lstat().st_mtime
    wait_for("30 s since the switch of the link", lambda: time.time() > switched + 31, 31)


def roll(kubectl: Kubectl, cluster: Cluster, name: str, warmup: Warmup, number: int) -> str:
    """Another image and another kernel, so that a bundle with other content is built and activated;
    returns its generation. The new pod is the builder, so it has mounted the tree before."""
    await_new_mounts(link(cluster, kubectl, name, warmup.uid))
    before = active(cluster, kubectl, warmup)
    image = cluster.another_tag(IMAGE, f"evict-{number}")
    container = "/spec/template/spec/containers/0"
    kubectl.patch(
        "deployment",
        name,
        [
            {"op": "replace", "path": f"{container}/image", "value": image},
            {"op": "replace", "path": f"{container}/env/0/value", "value": str(number)},
        ],
    )
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
    warmup.wait_warm()
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
    assert kubectl.execute(pods.name(pod), "ls", DIRECTORY)
    assert tree in trees(cluster)

    kubectl.scale("deployment", server.name, 0)
    wait_for("the tree is gone", lambda: tree not in trees(cluster), 180, kubectl)
    place = cluster.on_disk(NODE, f"{ROOT}/{kubectl.namespace}")
    wait_for("nothing is left of the namespace", lambda: not place.exists(), 60, kubectl)
    records = cluster.on_disk(NODE, f"{ROOT}/.state/links")
    wait_for(
        "its records are gone",
        lambda: not [each for each in records.iterdir() if each.name.startswith(uid)],
        20,
        kubectl,
    )
    trash = cluster.on_disk(NODE, f"{ROOT}/.trash")
    wait_for("the trash is empty", lambda: not list(trash.iterdir()), 60, kubectl)


@pytest.mark.slow
def test_rollouts_beyond_the_limit_evict_the_oldest_tree_that_no_pod_mounts(
    kubectl: Kubectl, product: Product, cluster: Cluster, server
):
    wait_for(
        "the trees of earlier tests are gone",
        lambda: not root_status(kubectl).get("usedBytes"),
        180,
        kubectl,
    )
    # Room for the tree that the running pod has mounted, to which it adds a kernel, the active one
    # and the next one.
    limit = 5 * BUNDLE_BYTES
    product.install(configuration(byteLimit=limit))
    try:
        warmup = warm_up(kubectl, server, caches=[CACHE], retain=8)
        generations = [active(cluster, kubectl, warmup)]
        for number in range(1, 5):
            generations.append(roll(kubectl, cluster, server.name, warmup, number))
            # A pod writes into its tree without asking; the agent measures it later.
            wait_for(
                "the caches are within the limit",
                lambda: root_status(kubectl).get("usedBytes", 0) <= limit,
                120,
                kubectl,
            )
        wait_for(
            "the oldest generation is evicted",
            lambda: generations[0] not in trees(cluster),
            180,
            kubectl,
        )
        kept = [each in trees(cluster) for each in generations]
        assert kept[-1], "the active tree"
        assert kept[-2], "mounted by the running pod"
        assert kept == sorted(kept), f"a newer tree was evicted before an older one: {kept}"
        assert root_status(kubectl)["evictedBytes"] > 0
    finally:
        product.install(configuration())


def test_a_superseded_tree_stays_as_long_as_a_pod_mounts_it(
    kubectl: Kubectl, product: Product, cluster: Cluster, server
):
    warmup = warm_up(kubectl, server, caches=[CACHE], retain=0)
    first = active(cluster, kubectl, warmup)
    # The builder mounted the tree before; its successor mounts this one.
    builder = pods.wait_ready(kubectl, server.name, 1, 60)[0]
    pod = until_ready(kubectl, replace(kubectl, builder))
    # No rollout replaces it, because it has left its ReplicaSet.
    kubectl.patch("pod", pods.name(pod), {"metadata": {"labels": {"app": "detached"}}})
    roll(kubectl, cluster, server.name, warmup, 9)
    # The pod of the rollout was its builder, so it has mounted the first tree too.
    await_new_mounts(link(cluster, kubectl, server.name, warmup.uid))
    newest = pods.wait_ready(kubectl, server.name, 1, 60)[0]
    until_ready(kubectl, replace(kubectl, newest))
    wait_for(
        "the agent offers the first tree",
        lambda: any(
            each["generation"] == first
            for each in kubectl.get("nodecache", NODE)["status"].get("evictable", [])
        ),
        120,
        kubectl,
    )
    holds_for("the first tree is there", lambda: first in trees(cluster), 10)
    confirmed = kubectl.get("nodecache", NODE)["spec"].get("evict", [])
    assert not [each for each in confirmed if each["generation"] == first]
    assert "rank_00.cubin" in kubectl.execute(pods.name(pod), "ls", DIRECTORY + "/kernels")
    kubectl.kill_pod(pods.name(pod))
    wait_for("the first tree is evicted", lambda: first not in trees(cluster), 180, kubectl)
