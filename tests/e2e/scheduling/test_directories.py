# SPDX-License-Identifier: Apache-2.0
"""A directory that cannot be used costs the cache and never the pod."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from harness import compiler, pods
from harness.cluster import Cluster
from harness.definitions import refusal
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, add_pod, assert_hit, replace, until_ready, warm_up
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, warmup_for

ROOT = "/var/lib/cachewarm"
TRAPPED = "node-b"
USABLE = "node-a"
NO_AGENT = "test.cachewarm.io/no-agent"
CACHE = {"name": "mine", "env": "MY_CACHE", "path": "mine"}


def writer(name: str, nodes: tuple[str, ...], **more: object) -> Sleeper:
    """Serves if it could write what it compiles, or has no directory to write to."""
    script = '[ -z "$MY_CACHE" ] || echo compiled > "$MY_CACHE/kernel" || exit 1; exec sleep 3600'
    probe = {"exec": {"command": ["/bin/true"]}, "periodSeconds": 1}
    container = {"readinessProbe": probe, **more.pop("container", {})}
    return Sleeper(name=name, replicas=0, nodes=nodes, script=script, container=container, **more)


def renew_agent(product: Product) -> None:
    """A new agent runs on TRAPPED. It is Ready only where the directory can be used."""
    old = pods.name(product.agent(TRAPPED))
    product.kubectl.kill_pod(old)

    def runs() -> bool:
        statuses = [
            status
            for pod in _agents_of(product)
            if pods.name(pod) != old
            for status in pod["status"].get("containerStatuses", [])
        ]
        return any("running" in status["state"] for status in statuses)

    wait_for(f"another agent on {TRAPPED}", runs, 60, product.kubectl)


@contextmanager
def remounted(cluster: Cluster, product: Product, flag: str, back: str) -> Iterator[None]:
    """The root of TRAPPED is mounted `flag` for everything that is started meanwhile."""
    try:
        cluster.in_node(TRAPPED, "mount", "-o", f"remount,bind,{flag}", ROOT)
        renew_agent(product)
        yield
    finally:
        cluster.in_node(TRAPPED, "mount", "-o", f"remount,bind,{back}", ROOT)
        renew_agent(product)
        product.wait_ready()


@contextmanager
def noexec(cluster: Cluster, product: Product) -> Iterator[None]:
    with remounted(cluster, product, "noexec", "exec"):
        yield


@contextmanager
def read_only(cluster: Cluster, product: Product) -> Iterator[None]:
    with remounted(cluster, product, "ro", "rw"):
        yield


@contextmanager
def full_disk(cluster: Cluster, product: Product) -> Iterator[None]:
    """A root of its own with no block left, instead of the node's."""
    try:
        cluster.in_node(TRAPPED, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", ROOT)
        cluster.in_node(TRAPPED, "bash", "-c", f"cat /dev/zero > {ROOT}/filler || true")
        renew_agent(product)
        yield
    finally:
        cluster.in_node(TRAPPED, "umount", "-l", ROOT)
        renew_agent(product)
        product.wait_ready()


@contextmanager
def no_agent(cluster: Cluster, product: Product) -> Iterator[None]:
    """A taint that the agent does not tolerate."""
    kubectl = product.kubectl
    try:
        kubectl.run("taint", "node", TRAPPED, f"{NO_AGENT}=:NoSchedule", "--overwrite")
        # Not by force: that returns while the process still runs and prepares directories.
        kubectl.delete("pod", pods.name(product.agent(TRAPPED)))
        wait_for("the agent is gone", lambda: not _agents_of(product), 60, kubectl)
        yield
    finally:
        kubectl.run("taint", "node", TRAPPED, f"{NO_AGENT}-")
        wait_for("the agent is back", lambda: _agents_of(product), 60, kubectl)
        product.wait_ready()


def _agents_of(product: Product) -> list[dict]:
    return [pod for pod in product.pods("agent") if pods.node(pod) == TRAPPED]


TRAPS = {
    "noexec": (noexec, "noexec"),
    "read-only": (read_only, "Read-only"),
    "full-disk": (full_disk, "space"),
    "no-agent": (no_agent, "agent"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_pod_runs_cold_on_a_node_with_unusable_directory(
    kubectl: Kubectl, product: Product, cluster: Cluster, name: str
):
    trap, word = TRAPS[name]
    alone = Sleeper(name="alone", replicas=0, nodes=(TRAPPED,), tolerate=(NO_AGENT,))
    beside = writer("beside", (USABLE, TRAPPED), tolerate=(NO_AGENT,))
    with trap(cluster, product):
        kubectl.apply(
            alone.deployment(),
            warmup_for(alone.deployment()),
            beside.deployment(),
            warmup_for(beside.deployment(), caches=[CACHE], compile={"builder": "FirstPod"}),
        )
        warmup = Warmup(kubectl, "alone")
        warmup.wait_condition("Ready", "False", "DirectoryUnusable", 120)
        wait_for(
            f"the condition names {TRAPPED} and says {word}",
            lambda: all(part in warmup.condition("Ready")["message"] for part in (TRAPPED, word)),
            60,
            kubectl,
        )
        kubectl.scale("deployment", "alone", 1)
        (pod,) = pods.wait_ready(kubectl, "alone", 1, 60)
        assert not injected(pod) and pods.restarts(pod) == 0
        assert_warmed_beside(kubectl, beside)
    # Nothing was lost: as soon as the directory can be used, it is.
    warmup.wait_injecting(120)


def assert_warmed_beside(kubectl: Kubectl, server: Sleeper) -> None:
    """A usable node is used, also beside an unusable one."""
    warmup = Warmup(kubectl, server.name)
    warmup.wait_injecting()
    warmup.wait_admission(server.pod("probe"))
    kubectl.scale("deployment", server.name, 2)
    running = pods.wait_ready(kubectl, server.name, 2, 60)
    where = [(pods.node(pod), injected(pod), pods.restarts(pod)) for pod in running]
    assert where == [(USABLE, True, 0)] * 2
    (bundle,) = warmup.wait_bundles(1, 60)
    wait_for(f"{USABLE} is warm", lambda: bundle["digest"] in warmup.active_on(USABLE), 60, kubectl)


def kept_off(pod: dict) -> set[str]:
    """The nodes that its release forbade it."""
    rules = pod["spec"]["affinity"]["nodeAffinity"]
    terms = rules["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    words = [each for term in terms for each in term["matchExpressions"]]
    return {node for each in words if each["operator"] == "NotIn" for node in each["values"]}


def test_held_pod_is_kept_off_a_node_without_usable_directory(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    both = Sleeper(name="both", replicas=0, nodes=(USABLE, TRAPPED))
    # The builder compiles nothing, so the others wait for as long as they may.
    gate = {"mode": "Hold", "maxHoldSeconds": 15}
    kubectl.apply(both.deployment(), warmup_for(both.deployment(), gate=gate))
    warmup = Warmup(kubectl, "both")
    warmup.wait_injecting()
    with noexec(cluster, product):
        wait_for(f"{TRAPPED} says so", lambda: not warmup.prepared_on(TRAPPED), 60, kubectl)
        wait_for(
            "new pods are held",
            lambda: gated(kubectl.create(both.pod("probe"), "--dry-run=server")),
            60,
            kubectl,
        )
        kubectl.scale("deployment", "both", 3)
        running = pods.wait_ready(kubectl, "both", 3, 120)
        where = [(pods.node(p), kept_off(p), injected(p), pods.restarts(p)) for p in running]
        assert where == [(USABLE, {TRAPPED}, True, 0)] * 3


def test_reimaged_node_fetches_again(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    """Re-imaged: the Node object, its NodeCache and what that says are still those of before."""
    server = compiler.compiler("reimaged", (USABLE, TRAPPED))
    server.one_per_node = True
    warmup = warm_up(kubectl, server, caches=[compiler.CACHE])
    kubectl.scale("deployment", server.name, 2)
    pods.wait_ready(kubectl, server.name, 2, 180)
    tree = f"{ROOT}/{kubectl.namespace}/{server.name}/{warmup.uid}/image/"

    def has_kernel() -> bool:
        return "rank_0.cubin" in cluster.in_node(TRAPPED, "sh", "-c", f"find -L {tree} || true")

    assert has_kernel()
    cluster.verb("node-down", TRAPPED)
    cluster.remove_in_node(TRAPPED, ROOT)
    cluster.verb("node-up", TRAPPED)
    product.wait_ready()
    wait_for("the bundle is on the new disk", has_kernel, 120, kubectl)
    (old,) = (pod for pod in pods.of(kubectl, server.name) if pods.node(pod) == TRAPPED)
    # The new agent may have begun to watch too late to report this start.
    compiler.assert_warm(kubectl, replace(kubectl, old))


def test_non_root_user_can_write_the_directory(
    kubectl: Kubectl, product: Product
):
    """A real engine in the pod of a builder Job, and in the pods that read its bundle."""
    server = ModelServer(name="uid1000", run_as=1000, nodes=(USABLE, TRAPPED), one_per_node=True)
    warmup = accept(kubectl, server, compile={"builder": "Job"})
    warmup.wait_warm()
    assert all(builder["job"] for builder in warmup.builders)
    kubectl.scale("deployment", server.name, 2)
    for pod in pods.wait_ready(kubectl, server.name, 2, 180):
        assert_hit(kubectl, pod)


def powerless_writer() -> Sleeper:
    """uid 1000 and not a single capability."""
    nothing = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    user = {"runAsUser": 1000, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return writer(
        "powerless",
        (TRAPPED,),
        container={"securityContext": nothing},
        spec={"securityContext": user},
        tolerate=(NO_AGENT,),
    )


def leave_as_root(cluster: Cluster, path: str) -> None:
    """As kubelet makes a hostPath directory that nobody has prepared."""
    made = f"mkdir -p {path} && chmod 0755 {path} && chown 0:0 {path}"
    cluster.in_node(TRAPPED, "sh", "-c", made)


def test_unprivileged_user_runs_where_kubelet_left_a_root_directory(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    """Cold while no agent is there to put the directory right, and with it once one is."""
    server = powerless_writer()
    with no_agent(cluster, product):
        kubectl.apply(
            server.deployment(),
            warmup_for(server.deployment(), caches=[CACHE], compile={"builder": "FirstPod"}),
        )
        warmup = Warmup(kubectl, server.name)
        warmup.wait_condition("Ready", "False", "DirectoryUnusable", 120)
        path = f"{ROOT}/{kubectl.namespace}/{server.name}/{warmup.uid}/u1000"
        leave_as_root(cluster, path)
        kubectl.scale("deployment", server.name, 1)
        (cold,) = pods.wait_ready(kubectl, server.name, 1, 60)
        assert not injected(cold) and pods.restarts(cold) == 0
    warmup.wait_injecting()
    warmup.wait_admission(server.pod("probe"))
    kubectl.kill_pod(pods.name(cold))

    def written() -> str:
        return cluster.in_node(TRAPPED, "sh", "-c", f"stat -c %u {path}/mine/kernel || true")

    wait_for("it wrote what it compiled", lambda: written().strip() == "1000", 60, kubectl)
    (pod,) = pods.wait_ready(kubectl, server.name, 1, 60)
    assert injected(pod) and pods.restarts(pod) == 0
    warmup.wait_warm(60)


def test_rejected_volume_suspends_the_injection(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    """A file stands where the pod's directory should be, and one level higher than where the agent
    would put it right. The pod waits at another gate until it does."""
    server = Sleeper(name="rejected", replicas=0, nodes=(TRAPPED,))
    kubectl.apply(
        server.deployment(), warmup_for(server.deployment(), compile={"builder": "FirstPod"})
    )
    warmup = Warmup(kubectl, server.name)
    warmup.wait_injecting()
    first = server.pod("first")
    first["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    warmup.wait_admission(first)
    assert injected(kubectl.create(first))
    wait_for(
        "the cachewarm gate is removed",
        lambda: pods.gates(kubectl.get("pod", "first")) == ["example.com/wait"],
        20,
        kubectl,
    )
    path = f"{ROOT}/{kubectl.namespace}/{server.name}/{warmup.uid}"
    cluster.remove_in_node(TRAPPED, path)
    cluster.write_in_node(TRAPPED, path, "in the way")
    try:
        kubectl.patch("pod", "first", [{"op": "remove", "path": "/spec/schedulingGates/0"}])
        seen = warmup.wait_condition("Ready", "False", "VolumeRejected")
        assert TRAPPED in seen["message"] and "pod first" in seen["message"], seen["message"]
        wait_for(
            "new pods are not injected",
            lambda: not injected(kubectl.create(server.pod("probe"), "--dry-run=server")),
            20,
            kubectl,
        )
        second = kubectl.create(server.pod("second"))
        assert not injected(second) and not pods.restarts(until_ready(kubectl, second, 60))
    finally:
        cluster.remove_in_node(TRAPPED, path)
    kubectl.kill_pod("first")
    assert not injected(kubectl.create(server.pod("third"), "--dry-run=server"))
    kubectl.patch("cachewarmup", server.name, {"spec": {"gate": {"maxHoldSeconds": 30}}})
    warmup.wait_injecting()


def kill_all(kubectl: Kubectl, app: str) -> None:
    for pod in pods.of(kubectl, app):
        kubectl.kill_pod(pods.name(pod))


def test_crashing_pods_suspend_the_injection_until_a_new_rollout(
    kubectl: Kubectl, product: Product
):
    broken = Sleeper(
        name="broken",
        replicas=0,
        nodes=(USABLE,),
        script='[ -d "$TORCHINDUCTOR_CACHE_DIR" ] && exit 1; touch /tmp/ready; exec sleep 3600',
    )
    ready = {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1}
    broken.container = {"readinessProbe": ready}
    kubectl.apply(broken.deployment(), warmup_for(broken.deployment()))
    warmup = Warmup(kubectl, "broken")
    warmup.wait_injecting()
    warmup.wait_admission(broken.pod("probe"))
    assert injected(add_pod(kubectl, "broken"))
    seen = warmup.wait_condition("Ready", "False", "PodsCrashing", 180)
    assert "empty cache directory" in seen["message"], seen["message"]
    for _ in range(2):
        kill_all(kubectl, "broken")
        (pod,) = pods.wait_ready(kubectl, "broken", 1, 60)
        assert not injected(pod) and pods.restarts(pod) == 0
        assert warmup.condition("Ready")["reason"] == "PodsCrashing"
    assert [node["name"] for node in warmup.status["suspension"]["nodes"]] == [USABLE]
    kubectl.run("rollout", "restart", "deployment/broken")
    warmup.wait_injecting()
    # The first pod of the rollout may be older than the decision.
    warmup.wait_admission(broken.pod("asked"))
    kill_all(kubectl, "broken")
    wait_for(
        "a pod of the new rollout has the cache",
        lambda: any(injected(pod) for pod in pods.of(kubectl, "broken")),
        60,
        kubectl,
    )


def test_template_that_moves_to_nodes_without_agent_is_not_injected(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    """A pod of uid 1000 could not write the directory that kubelet makes there."""
    hostname = "kubernetes.io/hostname"
    server = writer(
        "moved",
        (),
        spec={"securityContext": {"runAsUser": 1000}, "nodeSelector": {hostname: USABLE}},
        tolerate=(NO_AGENT,),
    )
    with no_agent(cluster, product):
        warmup = accept(kubectl, server, caches=[CACHE])
        assert warmup.status["injection"]["nodeSelector"] == {hostname: USABLE}
        warmup.wait_admission(server.pod("probe"))
        kubectl.scale("deployment", server.name, 1)
        (before,) = pods.wait_ready(kubectl, server.name, 1, 60)
        assert injected(before)
        moved = {"spec": {"template": {"spec": {"nodeSelector": {hostname: TRAPPED}}}}}
        kubectl.patch("deployment", server.name, moved)

        def arrived() -> dict | None:
            running = [pod for pod in pods.of(kubectl, server.name) if pods.node(pod) == TRAPPED]
            return next((pod for pod in running if pods.ready(pod)), None)

        after = wait_for(f"a Ready pod on {TRAPPED}", arrived, 120, kubectl)
        assert not injected(after) and pods.restarts(after) == 0


def no_host_paths(namespace: str, words: str) -> tuple[dict, dict]:
    """A policy for pods of the namespace and its binding."""
    pods_made = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    harmless = "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": namespace},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"namespaceSelector": here, "resourceRules": [pods_made]},
            "validations": [{"expression": harmless, "message": words}],
        },
    }
    binding = {
        **policy,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": namespace, "validationActions": ["Deny"]},
    }
    return policy, binding


@contextmanager
def host_paths_refused(kubectl: Kubectl, words: str) -> Iterator[None]:
    """An administrator's policy forbids them in the test's namespace with the message `words`."""
    pod = Sleeper(name="asks").pod("asks")
    pod["spec"]["volumes"] = [{"name": "tmp", "hostPath": {"path": "/tmp"}}]
    try:
        kubectl.apply(*no_host_paths(kubectl.namespace, words))
        # A policy is obeyed a moment after it was made, and a moment longer than it is there.
        wait_for("they are refused", lambda: words in refusal(kubectl, pod), 30, kubectl)
        yield
    finally:
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            kubectl.delete(kind, kubectl.namespace)
    wait_for("they are allowed again", lambda: not refusal(kubectl, pod), 30, kubectl)


# The first is reported by the workload itself; the second may concern anything in the pod, and
# shows only when the operator dry-runs the pod with the cache volume and without.
REFUSALS = {"reported": "no hostPath here", "dry-run": "ask the platform team"}


@pytest.mark.parametrize("words", REFUSALS.values(), ids=REFUSALS)
def test_rejected_pods_suspend_the_injection_until_a_new_rollout(
    kubectl: Kubectl, product: Product, words: str
):
    server = Sleeper(name="refused", nodes=(USABLE,))
    warmup = accept(kubectl, server)
    warmup.wait_admission(server.pod("probe"))
    with host_paths_refused(kubectl, words):
        kubectl.scale("deployment", server.name, 1)
        seen = warmup.wait_condition("Ready", "False", "InjectionRejected")
        assert words in seen["message"], seen["message"]
        (cold,) = pods.wait_ready(kubectl, server.name, 1, 60)
        assert not injected(cold) and pods.restarts(cold) == 0
        assert warmup.condition("Ready")["reason"] == "InjectionRejected"
    kubectl.run("rollout", "restart", f"deployment/{server.name}")
    warmup.wait_injecting()
    # The first pod of the rollout may be older than the decision.
    warmup.wait_admission(server.pod("asked"))
    kill_all(kubectl, server.name)
    (warm,) = pods.wait_ready(kubectl, server.name, 1, 60)
    assert injected(warm) and pods.restarts(warm) == 0
