# SPDX-License-Identifier: Apache-2.0
"""For every invalid input a condition and an event describe the remedy, and the workload runs
without the cache."""

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.compiler import CACHE, assert_cold, compiler
from harness.kubectl import Kubectl
from harness.product import Product, configuration
from harness.refusing_registry import WORDS, refusing_registry
from harness.steps import accept
from harness.waiting import wait_for
from harness.warmup import Warmup, injected, start_note, wait_event, warmup_for

NODE = "node-b"


def sleeper(name: str, script="exec sleep 3600", **container) -> dict:
    """A Deployment of one pod that needs nothing: no host path, no compile."""
    labels = {"app": name}
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "server",
                "image": "localhost/busybox:1",
                "command": ["/bin/sh", "-c", script],
                **container,
            }
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def pod_spec(deployment: dict) -> dict:
    return deployment["spec"]["template"]["spec"]


def assert_reported(warmup: Warmup, kind: str, status: str, reason: str, *words: str) -> None:
    """The condition says so with every one of `words`, and an event carries the same reason."""

    def reported() -> bool:
        seen = warmup.condition(kind)
        right = (seen.get("status"), seen.get("reason")) == (status, reason)
        return right and all(word in seen["message"] for word in words)

    what = f"{kind}={status} {reason} of {warmup.name} with the words {words}"
    wait_for(what, reported, 120, warmup.kubectl)
    event = wait_event(warmup.kubectl, warmup.name, reason)
    assert event["note"] and event["regarding"]["kind"] == "CacheWarmup", event


def assert_runs_uninjected(kubectl: Kubectl, app: str) -> None:
    (pod,) = pods.wait_ready(kubectl, app, 1, 60)
    assert not injected(pod) and not pods.gates(pod) and pods.restarts(pod) == 0


def renew_pod(kubectl: Kubectl, app: str) -> None:
    for pod in pods.of(kubectl, app):
        kubectl.kill_pod(pods.name(pod))
    wait_for("the old pod is gone", lambda: len(pods.of(kubectl, app)) == 1, 60, kubectl)


def test_warmup_waits_for_a_missing_workload(kubectl: Kubectl, product: Product):
    deployment = sleeper("later")
    kubectl.apply(warmup_for(deployment))
    warmup = Warmup(kubectl, "later")
    assert_reported(warmup, "Ready", "False", "WorkloadNotFound", "Deployment", "later")
    kubectl.apply(deployment)
    warmup.wait_injecting()


def test_missing_container_is_reported_by_name(kubectl: Kubectl, product: Product):
    deployment = sleeper("typo")
    kubectl.apply(deployment, warmup_for(deployment, container="sevrer"))
    warmup = Warmup(kubectl, "typo")
    assert_reported(warmup, "Ready", "False", "ContainerNotFound", "sevrer", "spec.container")
    assert_runs_uninjected(kubectl, "typo")


def test_cache_name_is_checked_against_the_presets(kubectl: Kubectl, product: Product):
    deployment = sleeper("caches")
    kubectl.apply(deployment, warmup_for(deployment, caches=[{"name": "jax"}, {"name": "tritton"}]))
    warmup = Warmup(kubectl, "caches")
    unknown = 'spec.caches[1].name: "tritton" is not a cache kind that cachewarm knows (known: '
    assert_reported(warmup, "Ready", "False", "InvalidSpec", unknown, "torchinductor, triton, ")
    assert_runs_uninjected(kubectl, "caches")
    own = {"name": "triton", "env": "MY_CACHE", "path": "mine"}
    kubectl.patch("cachewarmup", "caches", {"spec": {"caches": [own]}})
    taken = 'spec.caches[0].name: "triton" is a cache kind that cachewarm knows'
    assert_reported(warmup, "Ready", "False", "InvalidSpec", taken, "use another name")
    kubectl.patch("cachewarmup", "caches", {"spec": {"caches": [{"name": "triton"}]}})
    warmup.wait_injecting()


def test_builder_that_never_becomes_ready_sets_degraded(kubectl: Kubectl, product: Product):
    probe = {"exec": {"command": ["/bin/false"]}, "periodSeconds": 1}
    deployment = sleeper("unready", readinessProbe=probe)
    limits = {"timeoutSeconds": 5, "backoffLimit": 1}
    deployment["spec"]["replicas"] = 0
    kubectl.apply(deployment, warmup_for(deployment, compile={"builder": "FirstPod", **limits}))
    warmup = Warmup(kubectl, "unready")
    warmup.wait_injecting()
    kubectl.scale("deployment", "unready", 1)
    wait_event(kubectl, "unready", "BuilderTimeout")
    words = ("2 build attempts", "timeoutSeconds", "probe")
    assert_reported(warmup, "Degraded", "True", "BuildFailed", *words)
    (pod,) = pods.of(kubectl, "unready")
    assert pods.restarts(pod) == 0 and pod["status"]["phase"] == "Running"


def test_crashing_builder_reports_its_termination_message(kubectl: Kubectl, product: Product):
    script = "sleep 3; echo no memory left for kernel 7; exit 3"
    probe = {"exec": {"command": ["/bin/false"]}, "periodSeconds": 1}
    deployment = sleeper(
        "crashing",
        script,
        terminationMessagePolicy="FallbackToLogsOnError",
        readinessProbe=probe,
    )
    deployment["spec"]["replicas"] = 0
    limits = {"builder": "FirstPod", "backoffLimit": 0}
    kubectl.apply(deployment, warmup_for(deployment, compile=limits))
    warmup = Warmup(kubectl, "crashing")
    warmup.wait_injecting()
    kubectl.scale("deployment", "crashing", 1)
    assert_reported(warmup, "Degraded", "True", "BuildFailed", "no memory left for kernel 7")


def test_namespace_that_forbids_host_paths_is_skipped(kubectl: Kubectl, product: Product):
    enforce = "pod-security.kubernetes.io/enforce=baseline"
    kubectl.run("label", "namespace", kubectl.namespace, enforce)
    deployment = sleeper("forbidden")
    kubectl.apply(deployment, warmup_for(deployment))
    warmup = Warmup(kubectl, "forbidden")
    words = (kubectl.namespace, "label")
    assert_reported(warmup, "Ready", "False", "NamespaceForbidsHostPath", *words)
    assert_runs_uninjected(kubectl, "forbidden")


def test_injection_stops_when_the_namespace_forbids_host_paths(
    kubectl: Kubectl, product: Product
):
    probe = {"exec": {"command": ["/bin/true"]}, "periodSeconds": 1}
    deployment = sleeper("withdrawn", readinessProbe=probe)
    deployment["spec"]["replicas"] = 0
    kubectl.apply(deployment, warmup_for(deployment, gate={"mode": "Never"}))
    warmup = Warmup(kubectl, "withdrawn")
    warmup.wait_injecting()
    kubectl.scale("deployment", "withdrawn", 1)
    (pod,) = pods.wait_ready(kubectl, "withdrawn", 1, 60)
    assert injected(pod)
    enforce = "pod-security.kubernetes.io/enforce=baseline"
    kubectl.run("label", "namespace", kubectl.namespace, enforce)
    assert_reported(warmup, "Ready", "False", "NamespaceForbidsHostPath", "baseline")
    wait_for(
        "the policy no longer sees the warmup",
        lambda: "cachewarm.io/inject" not in warmup.read()["metadata"].get("labels", {}),
        30,
        kubectl,
    )
    renew_pod(kubectl, "withdrawn")
    assert_runs_uninjected(kubectl, "withdrawn")
    (pod,) = pods.of(kubectl, "withdrawn")
    event = wait_event(kubectl, pods.name(pod), "InjectionSkipped")
    assert "NamespaceForbidsHostPath" in event["note"], event
    note = wait_for(
        "it says why itself",
        lambda: start_note(kubectl.get("pod", pods.name(pod))),
        30,
        kubectl,
    )
    assert note["result"] == "cold" and "baseline" in note["skipReason"], note


@pytest.mark.parametrize("kind", ["volume", "mount"])
def test_conflicting_volume_or_mount_of_the_user_is_kept(
    kubectl: Kubectl, product: Product, kind: str
):
    deployment = sleeper("conflict")
    name = "cachewarm" if kind == "volume" else "user-volume"
    pod_spec(deployment)["volumes"] = [{"name": name, "emptyDir": {}}]
    mount = {"name": name, "mountPath": "/data" if kind == "volume" else "/var/cache/cachewarm"}
    pod_spec(deployment)["containers"][0]["volumeMounts"] = [mount]
    kubectl.apply(deployment, warmup_for(deployment))
    warmup = Warmup(kubectl, "conflict")
    words = ("cachewarm",) if kind == "volume" else ("/var/cache/cachewarm",)
    assert_reported(warmup, "Ready", "False", "VolumeConflict", *words)
    (pod,) = pods.wait_ready(kubectl, "conflict", 1, 60)
    assert [v["name"] for v in pod["spec"]["volumes"]].count(name) == 1
    assert not any("hostPath" in volume for volume in pod["spec"]["volumes"])


def test_node_with_read_only_root_gets_no_injected_pod(
    kubectl: Kubectl, product: Product, cluster: Cluster
):
    def remount(how: str) -> None:
        cluster.in_node(NODE, "mount", "-o", f"remount,bind,{how}", "/var/lib/cachewarm")
        product.kubectl.kill_pod(pods.name(product.agent(NODE)))

    deployment = sleeper("readonly")
    pod_spec(deployment)["nodeSelector"] = {"kubernetes.io/hostname": NODE}
    pod_spec(deployment)["securityContext"] = {"runAsUser": 1000}
    remount("ro")
    try:
        kubectl.apply(deployment, warmup_for(deployment))
        warmup = Warmup(kubectl, "readonly")
        assert_reported(warmup, "Ready", "False", "DirectoryUnusable", NODE, "ead-only")
        assert_runs_uninjected(kubectl, "readonly")
    finally:
        remount("rw")
    product.wait_ready()
    warmup.wait_injecting()


def test_store_error_is_reported_and_pods_start_cold(
    kubectl: Kubectl, product: Product
):
    server = compiler("refused", ("node-a",))
    with refusing_registry() as address:
        try:
            product.install(
                configuration(f"oci://{address}/cachewarm", registry={"insecure": [address]})
            )
            warmup = accept(kubectl, server, caches=[CACHE])
            kubectl.scale("deployment", server.name, 1)
            (pod,) = pods.wait_ready(kubectl, server.name, 1, 240)
            assert_cold(kubectl, pod)
            assert_reported(warmup, "Degraded", "True", "StoreError", WORDS, address)
            assert pods.restarts(pod) == 0
        finally:
            product.install()
    # The agent goes on trying: once the store is what it should be, the bundle is published.
    warmup.wait_bundles(1, 240)
    warmup.wait_condition("Degraded", "False", "Healthy", 120)
