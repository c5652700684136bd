# SPDX-License-Identifier: Apache-2.0
"""Tests the admission policy by dry run, with a copy of it that selects another label than the
one that the operator sets."""

import copy
import json
import uuid

import pytest

from harness import definitions
from harness.definitions import OPERATOR, impersonating, warmup
from harness.waiting import wait_for

LABEL = "cachewarm.test/inject"
INJECTION = {
    "labels": {"app": "llama", "tier": "gpu"},
    "container": "server",
    "gate": True,
    "warmRevisions": ["warm1", "warm2"],
    "env": [
        {"name": "TRITON_CACHE_DIR", "value": "/var/cache/cachewarm/triton"},
        {"name": "TORCHINDUCTOR_CACHE_DIR", "value": "/var/cache/cachewarm/inductor"},
    ],
}
EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
GATE = {"name": "cachewarm.io/wait-for-cache"}


def pod(**spec: object) -> dict:
    containers = [
        {"name": "proxy", "image": "i", "env": [{"name": "TRITON_CACHE_DIR", "value": "/p"}]},
        {"name": "server", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "llama",
            "labels": {"app": "llama", "tier": "gpu", "pod-template-hash": "cold1"},
        },
        "spec": {
            "automountServiceAccountToken": False,
            "containers": containers,
            "volumes": [{"name": "v", "emptyDir": {}}],
            **spec,
        },
    }


class Injected:
    """A namespace with one warmup, and the result of creating a pod there by dry run."""

    def __init__(self, kubectl, uid: str):
        self.kubectl, self.uid = kubectl, uid

    def create(self, thing: dict) -> dict:
        return self.kubectl.create(thing, "--dry-run=server")

    def is_injected(self, thing: dict) -> bool:
        made = self.create(thing)
        volumes = [v for v in made["spec"].get("volumes", []) if v["name"] == "cachewarm"]
        return bool(volumes) and "hostPath" in volumes[0]


def with_warmup(kubectl, name="llama", injection=INJECTION) -> str:
    thing = warmup(name, selector={"matchLabels": {"app": "nobody"}}, paused=True)
    thing["metadata"]["labels"] = {LABEL: kubectl.namespace}
    kubectl.apply(thing)
    operator = impersonating(kubectl, OPERATOR)
    operator.patch("cw", name, {"status": {"injection": injection}}, "--subresource=status")
    return kubectl.get("cw", name)["metadata"]["uid"]


@pytest.fixture(scope="module")
def place(admin, installed):
    """Returns one Injected for all tests of this file."""
    name = f"injection-{uuid.uuid4().hex[:5]}"
    admin.run("create", "namespace", name)
    kubectl = admin.within(name)
    policy, binding = (
        copy.deepcopy(installed[kind, "cachewarm.io"])
        for kind in ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    )
    for thing in (policy, binding):
        thing["metadata"]["name"] = f"{name}.cachewarm.test"
    selector = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    selector.append(
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [name]}
    )
    binding["spec"]["policyName"] = f"{name}.cachewarm.test"
    binding["spec"]["paramRef"]["selector"] = {"matchLabels": {LABEL: name}}
    wait_for("the namespace is ready", lambda: kubectl.get("serviceaccount", "default"), 30)
    uid = with_warmup(kubectl)
    kubectl.apply(policy, binding)
    injected = Injected(kubectl, uid)
    wait_for("the policy is in force", lambda: injected.is_injected(pod()), 60)
    yield injected
    for thing in (policy, binding):
        kubectl.delete(thing["kind"], thing["metadata"]["name"])
    kubectl.run("delete", "namespace", name, "--wait=false")


def container(made: dict, name: str = "server") -> dict:
    return next(c for c in made["spec"]["containers"] if c["name"] == name)


def volume(made: dict) -> dict:
    return next(v for v in made["spec"]["volumes"] if v["name"] == "cachewarm")


def path(place: Injected, run_as: str) -> str:
    return f"/var/lib/cachewarm/{place.kubectl.namespace}/llama/{place.uid}/{run_as}"


def test_volume_mount_variables_gate_and_annotations_are_added(place):
    made = place.create(pod())
    assert volume(made)["hostPath"] == {"path": path(place, "image"), "type": "DirectoryOrCreate"}
    server = container(made)
    assert {"name": "cachewarm", "mountPath": "/var/cache/cachewarm"} in server["volumeMounts"]
    assert sorted(server["env"], key=str) == sorted(INJECTION["env"], key=str)
    assert made["spec"]["schedulingGates"] == [GATE]
    assert made["metadata"]["annotations"] == {"cachewarm.io/warmup": "llama", EVICT: "cachewarm"}


def test_other_fields_are_unchanged(place):
    made, plain = place.create(pod()), pod()
    assert [c["name"] for c in made["spec"]["containers"]] == ["proxy", "server"]
    proxy = container(made, "proxy")
    assert proxy["env"] == plain["spec"]["containers"][0]["env"]
    assert "volumeMounts" not in proxy
    assert {"name": "v", "mountPath": "/v"} in container(made)["volumeMounts"]
    assert {"name": "v", "emptyDir": {}} in made["spec"]["volumes"]
    assert made["metadata"]["labels"] == plain["metadata"]["labels"]


def test_variable_of_the_pod_is_kept(place):
    thing = pod()
    thing["spec"]["containers"][1]["env"] = [{"name": "TRITON_CACHE_DIR", "value": "/mine"}]
    env = {e["name"]: e["value"] for e in container(place.create(thing))["env"]}
    assert env == {
        "TRITON_CACHE_DIR": "/mine",
        "TORCHINDUCTOR_CACHE_DIR": "/var/cache/cachewarm/inductor",
    }


@pytest.mark.parametrize("of_pod,of_container,run_as", [
    (None, None, "image"), (1000, None, "u1000"), (None, 0, "u0"), (1000, 2000, "u2000"),
])
def test_path_contains_the_user_of_the_container(place, of_pod, of_container, run_as):
    thing = pod()
    if of_pod is not None:
        thing["spec"]["securityContext"] = {"runAsUser": of_pod}
    if of_container is not None:
        thing["spec"]["containers"][1]["securityContext"] = {"runAsUser": of_container}
    assert volume(place.create(thing))["hostPath"]["path"] == path(place, run_as)


def labelled(**labels: str) -> dict:
    thing = pod()
    thing["metadata"]["labels"].update(labels)
    return thing


def annotated(**annotations: str) -> dict:
    thing = pod()
    thing["metadata"]["annotations"] = annotations
    return thing


def owned(kind: str) -> dict:
    thing = pod()
    thing["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "x", "controller": True}
    ]
    return thing


def unlabelled() -> dict:
    thing = pod()
    del thing["metadata"]["labels"]["tier"]
    return thing


def naked() -> dict:
    thing = pod()
    del thing["metadata"]["labels"]
    return thing


def with_volume(**source: object) -> dict:
    return pod(volumes=[{"name": "v", "emptyDir": {}}, {"name": "cachewarm", **source}])


def mounted_at(where: str) -> dict:
    thing = pod()
    thing["spec"]["containers"][1]["volumeMounts"][0]["mountPath"] = where
    return thing


UNTOUCHED = {
    "another label": labelled(tier="cpu"),
    "a label missing": unlabelled(),
    "no labels": naked(),
    "no such container": pod(containers=[{"name": "other", "image": "i"}], volumes=[]),
    "a builder Job": labelled(**{"cachewarm.io/builder-warmup": "uid"}),
    "a pod of a daemon set": owned("DaemonSet"),
    "windows": pod(os={"name": "windows"}),
    "another warmup's pod": annotated(**{"cachewarm.io/warmup": "other"}),
    "a pod of the unmodified dry run": annotated(**{"cachewarm.io/warmup": "-"}),
    "a volume with the same name": with_volume(emptyDir={}),
    "a host path with the same name": with_volume(hostPath={"path": "/etc"}),
    "a mount at the mount path": mounted_at("/var/cache/cachewarm"),
    "a mount below the mount path": mounted_at("/var/cache/cachewarm/triton"),
}
INJECTED = {
    "a pod of a replica set": owned("ReplicaSet"),
    "linux": pod(os={"name": "linux"}),
    "the annotation of the same warmup": annotated(**{"cachewarm.io/warmup": "llama"}),
    "a mount next to the mount path": mounted_at("/var/cache/cachewarm2"),
    "a label more": labelled(extra="label"),
}


@pytest.mark.parametrize("what", UNTOUCHED)
def test_skipped_pod_is_admitted_unchanged(place, what):
    made = place.create(UNTOUCHED[what])
    assert "schedulingGates" not in made["spec"]
    assert EVICT not in made["metadata"].get("annotations", {})
    assert not any(
        v.get("hostPath", {}).get("path", "").startswith("/var/lib/cachewarm")
        for v in made["spec"].get("volumes", [])
    )


@pytest.mark.parametrize("what", INJECTED)
def test_matching_pod_is_injected(place, what):
    assert place.is_injected(INJECTED[what])


@pytest.mark.parametrize("labels,gated", [
    ({"pod-template-hash": "cold1"}, True),
    ({"pod-template-hash": "warm1"}, False),
    ({"pod-template-hash": "cold1", "controller-revision-hash": "warm2"}, True),
    ({"rollouts-pod-template-hash": "warm2"}, False),
    ({"controller-revision-hash": "warm2"}, False),
    ({"controller-revision-hash": "cold2"}, True),
    ({}, True),
])
def test_only_revisions_that_are_not_warm_are_held(place, labels, gated):
    thing = pod()
    del thing["metadata"]["labels"]["pod-template-hash"]
    thing["metadata"]["labels"].update(labels)
    made = place.create(thing)
    assert made["spec"].get("schedulingGates", []) == ([GATE] if gated else [])
    assert volume(made)


def test_other_gates_are_kept(place):
    other = {"name": "kueue.x-k8s.io/admission"}
    made = place.create(pod(schedulingGates=[other]))
    assert sorted(g["name"] for g in made["spec"]["schedulingGates"]) == [
        GATE["name"], other["name"]]


def test_bound_pod_is_not_held(place):
    made = place.create(pod(nodeName="somewhere"))
    assert "schedulingGates" not in made["spec"]
    assert volume(made)


@pytest.mark.parametrize("before,after", [
    ("scratch", "scratch,cachewarm"), ("cachewarm", "cachewarm"),
    ("a,cachewarm,b", "a,cachewarm,b"),
    ("cachewarm2", "cachewarm2,cachewarm"),
])
def test_autoscaler_can_still_remove_the_node(place, before, after):
    made = place.create(annotated(**{EVICT: before}))
    assert made["metadata"]["annotations"][EVICT] == after


def test_injection_without_gate_or_warm_revisions_works(place):
    injection = {**INJECTION, "gate": False, "labels": {"app": "open"}, "env": []}
    del injection["warmRevisions"]
    uid = with_warmup(place.kubectl, "open", injection)
    thing = labelled(app="open")
    wait_for("the second warmup is seen", lambda: place.is_injected(thing), 30)
    made = place.create(thing)
    assert "schedulingGates" not in made["spec"]
    assert "env" not in container(made)
    assert f"/open/{uid}/" in volume(made)["hostPath"]["path"]


def test_path_cannot_be_chosen_by_a_pod(place):
    made = place.create(annotated(**{"cachewarm.io/path": "/etc", "cachewarm.io/root": "/etc"}))
    assert volume(made)["hostPath"]["path"] == path(place, "image")


def test_namespace_that_forbids_host_paths_is_skipped(place):
    for level in ("baseline", "restricted"):
        enforce = f"pod-security.kubernetes.io/enforce={level}"
        place.kubectl.run("label", "namespace", place.kubectl.namespace, enforce, "--overwrite")
        try:
            strict = {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            }
            thing = pod()
            for each in thing["spec"]["containers"]:
                each["securityContext"] = strict
            wait_for("the label is seen", lambda: not place.is_injected(thing), 30)
        finally:
            place.kubectl.run("label", "namespace", place.kubectl.namespace,
                              "pod-security.kubernetes.io/enforce-")
    wait_for("the label is gone", lambda: place.is_injected(pod()), 30)


def test_suspended_injection_stops_at_once(place):
    kubectl = place.kubectl
    with_warmup(kubectl, "gone", {**INJECTION, "labels": {"app": "gone"}})
    thing = labelled(app="gone")
    wait_for("it is injected", lambda: place.is_injected(thing), 30)
    kubectl.run("label", "cw", "gone", f"{LABEL}-")
    wait_for("it is not any more", lambda: not place.is_injected(thing), 30)
    assert json.dumps(kubectl.get("cw", "gone")["status"]["injection"]["labels"])
    assert definitions.refusal(kubectl, thing) == ""
