# SPDX-License-Identifier: Apache-2.0
"""A workload asks to be warm by an annotation, a namespace by a label; kinds of others are followed
from the moment the cluster has them."""

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest
from harness import pods
from harness.cluster import Cluster
from harness.compiler import assert_counted_hit, compiler, trainer
from harness.compiler import assert_hit as assert_counted_as_hit
from harness.kubectl import Kubectl
from harness.model_server import ModelServer
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import add_pod, assert_hit, until_released
from harness.waiting import holds_for, wait_for
from harness.warmup import Warmup, events, gated, injected, make_warmup, released, wait_event
from harness.writes import at_rest, last_writes

PREFIX = "cachewarm.io/"
# How often the operator asks whether a kind is served, and a margin.
DISCOVERY_SECONDS = 90
# Until discovery reports a kind as gone for the second time, and a margin.
KIND_RELEASE_SECONDS = 100
GONE = '"msg":"kind is not served"'


def definition(group: str, version: str, plural: str, kind: str) -> dict:
    """A CustomResourceDefinition that takes anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, made by a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


DEFINITIONS = (
    definition("argoproj.io", "v1alpha1", "rollouts", "Rollout"),
    definition("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet"),
)


@pytest.fixture(scope="module", autouse=True)
def kinds_of_others(cluster: Cluster, installation: Product):
    """Installed while the operator runs: it notices during the tests that do not need them."""
    admin = cluster.kubectl()
    for each in DEFINITIONS:
        admin.delete("crd", each["metadata"]["name"])
    admin.apply(*DEFINITIONS)
    yield
    for each in DEFINITIONS:
        admin.delete("crd", each["metadata"]["name"], "--wait=false")


def annotate(kubectl: Kubectl, kind: str, name: str, **values: str) -> None:
    """None takes an annotation away."""
    words = [
        f"{PREFIX}{key.replace('_', '-')}" + ("-" if value is None else f"={value}")
        for key, value in values.items()
    ]
    kubectl.run("annotate", "--overwrite", kind, name, *words)


def asking(thing: dict, **values: str) -> dict:
    marks = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in values.items()}
    thing["metadata"]["annotations"] = marks
    return thing


def wait_invalid(kubectl: Kubectl, name: str, reason: str, words: str) -> None:
    def reported() -> bool:
        return any(
            e.get("reason") == reason and words in e.get("note", "") for e in events(kubectl, name)
        )

    wait_for(f"event {reason} about {name} says {words}", reported, 30, kubectl)


class TestAnnotatedDeployment:
    """One that runs already when it is annotated. Its engine is torch: the annotation alone names
    no cache, so every preset is set."""

    SERVER = ModelServer(name="llama", nodes=("node-a", "node-b"))

    @pytest.fixture
    def warmup(self, shared: Kubectl, product: Product) -> Warmup:
        return Warmup(shared, self.SERVER.name)

    def test_annotation_creates_the_warmup_without_a_rollout(self, shared: Kubectl, warmup: Warmup):
        shared.apply(self.SERVER.deployment())
        first = pods.wait_ready(shared, self.SERVER.name, 1, 180)
        annotate(shared, "deployment", "llama", warm="true", settle_seconds="2", builder="FirstPod")
        wait_for("the warmup is made", lambda: warmup.read(), 30, shared)
        warmup.wait_injecting()
        created = warmup.read()
        owner = created["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"]) == ("Deployment", "llama")
        assert created["spec"]["compile"]["settleSeconds"] == 2
        assert created["spec"]["workloadRef"]["name"] == "llama"
        wait_event(shared, "llama", "WarmupCreated")
        assert len(shared.list("replicasets", "app=llama")) == 1
        assert [pods.name(p) for p in pods.of(shared, "llama")] == [pods.name(p) for p in first]
        assert not injected(first[0])

    def test_new_pods_start_warm(self, shared: Kubectl, warmup: Warmup):
        assert injected(add_pod(shared, "llama"))
        pods.wait_ready(shared, "llama", 2, 180)
        warmup.wait_warm()
        assert_hit(shared, add_pod(shared, "llama"))
        assert len(shared.list("replicasets", "app=llama")) == 1

    def test_annotations_override_only_their_own_fields(
        self, shared: Kubectl, warmup: Warmup
    ):
        shared.patch("cachewarmup", "llama", {"spec": {"compile": {"backoffLimit": 1}}})
        annotate(shared, "deployment", "llama", max_hold_seconds="7")
        spec = wait_for(
            "the override is in the spec",
            lambda: warmup.read()["spec"]["gate"]["maxHoldSeconds"] == 7 and warmup.read()["spec"],
            30,
            shared,
        )
        assert spec["compile"]["backoffLimit"] == 1
        shared.patch("cachewarmup", "llama", {"spec": {"gate": {"maxHoldSeconds": 8}}})
        wait_for(
            "what an annotation says is put back",
            lambda: warmup.read()["spec"]["gate"]["maxHoldSeconds"] == 7,
            30,
            shared,
        )

    def test_invalid_annotations_are_reported_on_the_workload(
        self, shared: Kubectl, warmup: Warmup
    ):
        before = warmup.read()["spec"]
        bad = {"max_hold_seconds": "soon", "gates": "Never", "caches": "triton,tritton"}
        annotate(shared, "deployment", "llama", **bad)
        refused = "InvalidAnnotation"
        wait_invalid(shared, "llama", refused, 'cachewarm.io/max-hold-seconds: "soon"')
        wait_invalid(shared, "llama", refused, "cachewarm.io/gates is unknown")
        unknown = 'cachewarm.io/caches: "tritton" is not a cache kind that cachewarm knows (known: '
        wait_invalid(shared, "llama", refused, unknown)
        assert warmup.read()["spec"] == before
        annotate(shared, "deployment", "llama", **dict.fromkeys(bad))
        wait_for(
            "the default is back",
            lambda: warmup.read()["spec"]["gate"]["maxHoldSeconds"] == 60,
            30,
            shared,
        )

    def test_restored_annotation_cancels_the_removal(self, shared: Kubectl, warmup: Warmup):
        uid = warmup.uid
        annotate(shared, "deployment", "llama", warm=None)
        since = f"{PREFIX}removal-requested-at"

        def marked() -> bool:
            return since in warmup.read()["metadata"]["annotations"]

        wait_for("it is marked since when", marked, 30, shared)
        wait_event(shared, "llama", "AnnotationRemoved")
        holds_for("the warmup is there and injects", lambda: warmup.injection != {}, 3)
        annotate(shared, "deployment", "llama", warm="true")
        wait_for("the mark is gone", lambda: not marked(), 30, shared)
        assert warmup.uid == uid

    def test_resync_and_new_leader_write_nothing(
        self, shared: Kubectl, warmup: Warmup, product: Product
    ):
        before = wait_for("all is written", lambda: at_rest(shared, warmup), 60, shared)
        assert any(manager.startswith("cw-") for _, manager in before["nodecaches"])
        holder = product.lease_holder()
        product.kill_leader()
        wait_for("another leads", lambda: product.lease_holder() not in ("", holder), 60, shared)
        holds_for("nothing is written", lambda: last_writes(shared, warmup) == before, 5)

    def test_warmup_of_another_owner_is_never_overwritten(self, shared: Kubectl, warmup: Warmup):
        shared.apply(make_warmup("taken", selector={"matchLabels": {"app": "other"}}))
        before = shared.get("cachewarmup", "taken")["spec"]
        server = Sleeper(name="taken", replicas=0)
        shared.apply(asking(server.deployment(), warm="true"))
        wait_event(shared, "taken", "WarmupNameTaken")
        after = shared.get("cachewarmup", "taken")
        assert after["spec"] == before and "ownerReferences" not in after["metadata"]


def test_warmup_and_held_pods_end_ten_minutes_after_annotation_removal(
    kubectl: Kubectl, product: Product
):
    # One GPU type, whose builder never ends: the second pod waits.
    server = Sleeper(name="unannotated", replicas=0, nodes=("node-a", "node-b"))
    requested = {"gate": "Hold", "max_hold_seconds": "300", "builder": "FirstPod"}
    kubectl.apply(asking(server.deployment(), warm="true", **requested))
    warmup = Warmup(kubectl, server.name)
    wait_for("its warmup is made", lambda: warmup.read(), 30, kubectl)
    warmup.wait_injecting()
    warmup.wait_admission(server.pod("probe"))
    kubectl.scale("deployment", server.name, 1)
    (running,) = pods.wait_ready(kubectl, server.name, 1, 60)
    held = add_pod(kubectl, server.name)
    assert injected(running) and gated(held)

    annotate(kubectl, "deployment", server.name, warm=None)
    wait_event(kubectl, server.name, "AnnotationRemoved", 30)
    assert gated(kubectl.get("pod", pods.name(held))), "not before its time"
    since = datetime.now(timezone.utc) - timedelta(minutes=11)
    mark = since.strftime("%Y-%m-%dT%H:%M:%SZ")
    annotate(kubectl, "cachewarmup", server.name, removal_requested_at=mark)

    wait_for("the warmup is gone", lambda: not warmup.read(), 30, kubectl)
    assert released(until_released(kubectl, held, 30)) == "ReleasedHoldingDisabled"
    wait_for(
        "new pods are not injected",
        lambda: not injected(kubectl.create(server.pod("probe"), "--dry-run=server")),
        20,
        kubectl,
    )
    later = add_pod(kubectl, server.name)
    assert not injected(later) and not gated(later)
    pods.wait_ready(kubectl, server.name, 3, 60)
    still = kubectl.get("pod", pods.name(running))
    assert still["metadata"]["uid"] == running["metadata"]["uid"]
    assert still["spec"] == running["spec"] and pods.restarts(still) == 0
    assert len(kubectl.list("replicasets", f"app={server.name}")) == 1


def test_labelled_namespace_warms_workloads_that_request_an_accelerator(
    kubectl: Kubectl, product: Product
):
    gpu = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    things = []
    for name, device in (("gpu", gpu), ("plain", {}), ("out", gpu)):
        thing = Sleeper(name=name, replicas=0).deployment()
        thing["spec"]["template"]["spec"]["containers"][0].update(device)
        things.append(thing)
    asking(things[2], warm="false")
    kubectl.apply(*things)
    kubectl.run("label", "namespace", kubectl.namespace, "cachewarm.io/warm=true")
    wait_for("the one with a GPU is warmed", lambda: kubectl.get("cachewarmup", "gpu"), 30, kubectl)
    holds_for(
        "the others have no warmup",
        lambda: [pods.name(w) for w in kubectl.list("cachewarmups")] == ["gpu"],
        2,
    )


def test_selector_warms_pods_of_an_unknown_owner_in_a_labelled_namespace(
    cluster: Cluster, kubectl: Kubectl, product: Product
):
    def run(number: int) -> dict:
        device = {"limits": {"nvidia.com/gpu": "1"}}
        pod = compiler("train", ("node-c",), resources=device).pod(f"run-{number}-0")
        pod["metadata"]["labels"]["volcano.sh/job-name"] = f"run-{number}"
        return pod

    kubectl.run("label", "namespace", kubectl.namespace, "cachewarm.io/warm=true")
    cluster.verb("fake-gpus", "node-c", "2")
    try:
        assert not injected(kubectl.create(run(1)))
        holds_for("the label creates none", lambda: not kubectl.list("cachewarmups"), 2)
        kubectl.apply(make_warmup("train", selector={"matchLabels": {"app": "train"}}))
        warmup = Warmup(kubectl, "train")
        warmup.wait_injecting()
        assert injected(kubectl.create(run(2)))
        warmup.wait_bundles(1)
        for each in ("run-1-0", "run-2-0"):
            kubectl.kill_pod(each)
        assert_counted_as_hit(kubectl, kubectl.create(run(3)))
    finally:
        for pod in kubectl.list("pods"):
            kubectl.kill_pod(pods.name(pod))
        wait_for("no device is held", lambda: not kubectl.list("pods"), 60, kubectl)
        cluster.verb("fake-gpus", "node-c", "0")


def stateful_set() -> dict:
    """Without a pod until its warmup is there: the first would start cold."""
    return compiler("nightly", ("node-a",)).stateful_set()


def one_job() -> dict:
    training = trainer("nightly", ("node-a",))
    training.replicas = 1
    return training.job()


def job() -> dict:
    thing = one_job()
    thing["spec"]["suspend"] = True
    return thing


def cron_job() -> dict:
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": one_job()["spec"]}}
    return {**one_job(), "kind": "CronJob", "spec": spec}


# The command that creates the first pod.
FIRST_POD = {
    stateful_set: ("scale", "statefulset/nightly", "--replicas=1"),
    job: ("patch", "job/nightly", "--patch", '{"spec": {"suspend": false}}'),
    cron_job: ("create", "job", "first", "--from=cronjob/nightly"),
}


@pytest.mark.parametrize("make", FIRST_POD)
def test_annotated_kubernetes_workload_is_warmed(
    kubectl: Kubectl, product: Product, make: Callable[[], dict]
):
    requested = {"settle_seconds": "2", "builder": "FirstPod"}
    kubectl.apply(asking(make(), warm="true", **requested))
    warmup = Warmup(kubectl, "nightly")
    wait_for("its warmup is made", lambda: warmup.read(), 30, kubectl)
    warmup.wait_injecting()
    kubectl.run(*FIRST_POD[make])
    wait_for("it has a pod", lambda: pods.of(kubectl, "nightly"), 30, kubectl)
    assert injected(pods.of(kubectl, "nightly")[0])
    warmup.wait_bundles(1)
    assert [pods.name(w) for w in kubectl.list("cachewarmups")] == ["nightly"]


def test_job_that_is_created_again_starts_warm(kubectl: Kubectl, product: Product):
    requested = {"settle_seconds": "2", "builder": "FirstPod"}
    kubectl.apply(asking(job(), warm="true", **requested))
    warmup = Warmup(kubectl, "nightly")
    wait_for("its warmup is made", lambda: warmup.read(), 30, kubectl)
    warmup.wait_injecting()
    uid = warmup.uid
    kubectl.run(*FIRST_POD[job])
    warmup.wait_bundles(1)
    warmup.wait_warm()

    def expiry() -> str:
        return warmup.read()["metadata"]["annotations"].get(f"{PREFIX}expires-at", "")

    kubectl.delete("job", "nightly")
    wait_for("its pods are gone", lambda: not pods.of(kubectl, "nightly"), 60, kubectl)
    wait_for("the warmup has a time of expiry", expiry, 30, kubectl)
    left = datetime.fromisoformat(expiry()) - datetime.now(timezone.utc)
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)
    assert warmup.injection, "admission needs it for the pod that the next Job creates at once"

    kubectl.apply(asking(one_job(), warm="true", **requested))
    (pod,) = wait_for("it has a pod", lambda: pods.of(kubectl, "nightly"), 30, kubectl)
    assert injected(pod)
    wait_for(
        "the pod ends",
        lambda: kubectl.get("pod", pods.name(pod))["status"].get("phase") == "Succeeded",
        120,
        kubectl,
    )
    assert_counted_hit(kubectl, pod)
    wait_for("the warmup has no time of expiry", lambda: not expiry(), 30, kubectl)
    assert warmup.uid == uid, "the cache directory has this uid in its path"


def test_expired_warmup_of_a_deleted_job_is_removed(kubectl: Kubectl, product: Product):
    kubectl.apply(asking(job(), warm="true"))
    warmup = Warmup(kubectl, "nightly")
    wait_for("its warmup is made", lambda: warmup.read(), 30, kubectl)
    kubectl.delete("job", "nightly")
    wait_for(
        "the warmup has a time of expiry",
        lambda: f"{PREFIX}expires-at" in warmup.read()["metadata"]["annotations"],
        30,
        kubectl,
    )
    annotate(kubectl, "cachewarmup", "nightly", expires_at="2026-01-01T00:00:00Z")
    wait_for("the warmup is gone", lambda: not warmup.read(), 30, kubectl)
    wait_event(kubectl, "nightly", "WarmupDeleted", 30)


def last_discovery_lines(product: Product, plural: str, *flags: str) -> list[str]:
    """The last line of each operator's log about whether the kind is served; "" for none."""

    def last(pod: dict) -> str:
        lines = product.kubectl.logs(pods.name(pod), *flags).splitlines()
        marks = ('"msg":"kind is ', f'"resource":"{plural}"')
        return next((line for line in reversed(lines) if all(m in line for m in marks)), "")

    return [last(pod) for pod in product.pods("operator")]


class TestThirdPartyKinds:
    """Pods are made by the test, as the kinds' controllers would."""

    @staticmethod
    def follow(kubectl: Kubectl, thing: dict, labels: dict[str, str]) -> None:
        name = thing["metadata"]["name"]
        kubectl.apply(asking(thing, warm="true"))
        warmup = Warmup(kubectl, name)
        wait_for(
            f"the operator noticed {thing['kind']}",
            lambda: warmup.read(),
            DISCOVERY_SECONDS,
            kubectl,
        )
        assert warmup.read()["spec"]["workloadRef"]["kind"] == thing["kind"]
        warmup.wait_injecting()
        pod = Sleeper(name=name).pod(f"{name}-0")
        pod["metadata"]["labels"].update(labels)
        assert injected(kubectl.create(pod, "--dry-run=server"))

    def test_rollout_is_warmed(self, kubectl: Kubectl, product: Product):
        deployment = Sleeper(name="canary", replicas=0).deployment()
        rollout = {**deployment, "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
        self.follow(kubectl, rollout, {"rollouts-pod-template-hash": "abc"})

    def test_leader_worker_set_is_warmed(self, kubectl: Kubectl, product: Product):
        template = Sleeper(name="big").template()
        thing = {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "big"},
            "spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
        }
        label = {"leaderworkerset.sigs.k8s.io/name": "big"}
        self.follow(kubectl, thing, label)

    def test_removed_kind_crashes_no_operator(self, cluster: Cluster, product: Product):
        def restarts() -> dict[str, int]:
            return {pods.name(pod): pods.restarts(pod) for pod in product.pods("operator")}

        def gone(*flags: str) -> list[bool]:
            return [GONE in line for line in last_discovery_lines(product, "rollouts", *flags)]

        wait_for(
            "each operator knows the kind",
            lambda: not any(gone()),
            DISCOVERY_SECONDS,
            product.kubectl,
        )
        before = restarts()
        cluster.kubectl().delete("crd", "rollouts.argoproj.io")
        wait_for(
            "each operator stopped watching the kind",
            lambda: all(gone("--since=10m")),
            KIND_RELEASE_SECONDS,
            product.kubectl,
        )
        assert restarts() == before
        product.wait_ready()
