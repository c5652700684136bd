# SPDX-License-Identifier: Apache-2.0
"""Pods of a warmed workload that are not injected: skipped ones, and those created before the
policy has seen the warmup. They start without the cache, carry the reason, count as cold, and no
pod waits for them."""

import json
import threading

import pytest
from harness import pods
from harness.api import Api
from harness.cluster import Cluster
from harness.gates import small_pod
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import until_ready
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, start_note, wait_event, warmup_for

# A pod that waited for a bundle of the skipped pod would wait this long.
PATIENT = {"mode": "Hold", "maxHoldSeconds": 900}
WARMUPS = 10
ROUNDS = 5


def probed_pod(name: str, app: str) -> dict:
    """Ready says something of a start only where it was probed."""
    pod = small_pod(name, {"app": app})
    probe = {"exec": {"command": ["/bin/true"]}, "periodSeconds": 1}
    pod["spec"]["containers"][0]["readinessProbe"] = probe
    return pod


def template(app: str) -> dict:
    pod = probed_pod("", app)
    return {"metadata": {"labels": {"app": app}}, "spec": pod["spec"]}


def create_warmup(kubectl: Kubectl, name: str, **spec) -> None:
    """A Deployment without pods and its warmup, which the operator has not seen yet."""
    deployment = Sleeper(name=name, replicas=0).deployment()
    deployment["spec"]["template"] = template(name)
    kubectl.apply(deployment, warmup_for(deployment, compile={"builder": "FirstPod"}, **spec))


def has_cache_directory(pod: dict) -> bool:
    """A volume of our name may be the user's."""
    return any(v["name"] == "cachewarm" and "hostPath" in v for v in pod["spec"]["volumes"])


def assert_skipped(kubectl: Kubectl, name: str, words: str) -> None:
    """It is Ready, was never held, and says itself that it started cold, and why."""
    ready = until_ready(kubectl, {"metadata": {"name": name}}, 60)
    assert not has_cache_directory(ready) and not gated(ready)
    note = wait_for(
        f"{name} says how it started", lambda: start_note(kubectl.get("pod", name)), 60, kubectl
    )
    assert note["result"] == "cold" and words in note["skipReason"], note
    event = wait_event(kubectl, name, "InjectionSkipped")
    assert words in event["note"]


@pytest.fixture(scope="module")
def warmup(shared: Kubectl, installation: Product) -> Warmup:
    create_warmup(shared, "choosy")
    found = Warmup(shared, "choosy")
    found.wait_injecting()
    found.wait_admission(probed_pod("probe", "choosy"))
    return found


class TestSkippedPods:
    def test_pod_with_a_volume_named_cachewarm_is_skipped(self, shared: Kubectl, warmup: Warmup):
        pod = probed_pod("own-volume", "choosy")
        pod["spec"]["volumes"] = [{"name": "cachewarm", "emptyDir": {}}]
        shared.apply(pod)
        assert_skipped(shared, "own-volume", "rename that volume")

    def test_pod_that_mounts_below_the_cache_path_is_skipped(self, shared: Kubectl, warmup: Warmup):
        pod = probed_pod("own-mount", "choosy")
        mount = {"name": "mine", "mountPath": "/var/cache/cachewarm/triton"}
        pod["spec"]["containers"][0]["volumeMounts"] = [mount]
        pod["spec"]["volumes"] = [{"name": "mine", "emptyDir": {}}]
        shared.apply(pod)
        assert_skipped(shared, "own-mount", "set another mountPath")

    def test_daemon_set_pod_is_skipped(self, shared: Kubectl, warmup: Warmup):
        marked = template("choosy")
        # Else it would adopt the pods of the other tests.
        marked["metadata"]["labels"]["set"] = "everywhere"
        spec = {"selector": {"matchLabels": {"set": "everywhere"}}, "template": marked}
        metadata = {"name": "everywhere"}
        shared.apply(
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}
        )

        def made() -> str:
            found = pods.of(shared, "choosy")
            return next((n for n in map(pods.name, found) if n.startswith("everywhere")), "")

        assert_skipped(shared, wait_for("its pod", made, 60, shared), "DaemonSet")
        shared.delete("daemonset", "everywhere")

    def test_pod_with_node_name_is_injected_and_not_held(
        self, shared: Kubectl, warmup: Warmup
    ):
        pod = probed_pod("placed", "choosy")
        pod["spec"]["nodeName"] = "node-a"
        shared.apply(pod)
        ready = until_ready(shared, pod, 60)
        assert injected(ready) and not gated(ready)


class Sprinter:
    """Creates a pod of each warmup in the moment in which the warmup says that it injects, and
    before the API server's policy can know. Faster than kubectl starts."""

    def __init__(self, api: Api, namespace: str, names: set[str]):
        self._api = api
        self._namespace = namespace
        self._missing = set(names)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Sprinter":
        self._warmups = f"/apis/cachewarm.io/v1alpha1/namespaces/{self._namespace}/cachewarmups"
        self._version = json.loads(self._api.ask(self._warmups).read())["metadata"][
            "resourceVersion"
        ]
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        assert self._over.wait(120), f"never accepted: {self._missing}"

    def _run(self) -> None:
        path = f"{self._warmups}?watch=1&resourceVersion={self._version}&timeoutSeconds=120"
        for line in self._api.ask(path):
            thing = json.loads(line)["object"]
            conditions = thing.get("status", {}).get("conditions", [])
            name = thing["metadata"]["name"]
            if name in self._missing and any(
                each["type"] == "Ready" and each["status"] == "True" for each in conditions
            ):
                pod = probed_pod(f"{name}-early", name)
                self._api.create(f"/api/v1/namespaces/{self._namespace}/pods", pod)
                self._missing.discard(name)
            if not self._missing:
                break
        self._over.set()


def test_pod_created_before_the_policy_acts_starts_cold_and_is_counted(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    """5 of 20 do in Kubernetes 1.36.1; so there are as many tries as it takes."""
    api = Api(cluster.state / "admin.kubeconfig")
    slipped: list[str] = []
    for number in range(ROUNDS):
        names = [f"new-{number}-{each}" for each in range(WARMUPS)]
        with Sprinter(api, kubectl.namespace, set(names)):
            for name in names:
                create_warmup(kubectl, name, gate=PATIENT)
        made = {name: kubectl.get("pod", f"{name}-early") for name in names}
        slipped = [name for name, pod in made.items() if not injected(pod)]
        print(f"{len(slipped)} of {len(names)} slipped past the policy")
        if slipped:
            break
        kubectl.run("delete", "cachewarmups,deployments,pods", "--all", "--wait=false")
    assert slipped, "no pod slipped past the policy"
    for name in slipped[:3]:
        why = "before the admission policy had seen the CacheWarmup"
        assert_skipped(kubectl, f"{name}-early", why)
        warmup = Warmup(kubectl, name)
        wait_for("it is counted", lambda w=warmup: w.counts.get("cold") == 1, 30, kubectl)
        assert all(b.get("podName") != f"{name}-early" for b in warmup.builders)
        kubectl.scale("deployment", name, 1)
        both = pods.wait_ready(kubectl, name, 2, 60)
        (later,) = (pod for pod in both if pods.name(pod) != f"{name}-early")
        assert injected(later) and pods.restarts(later) == 0
