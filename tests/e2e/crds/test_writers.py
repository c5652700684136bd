# SPDX-License-Identifier: Apache-2.0
"""Tests RBAC and the policies of write-policy.yaml of the chart with real tokens of the real
service accounts."""

import json
import uuid

import pytest

from harness.definitions import OPERATOR, SYSTEM, answer, impersonating, nodecache, warmup
from harness.kubectl import Kubectl
from harness.waiting import wait_for

DRY = "--dry-run=server"


@pytest.fixture(scope="module")
def nodes(admin, installed) -> tuple[str, str]:
    """Two nodes that have a NodeCache."""
    operator = impersonating(admin, OPERATOR)
    names = sorted(node["metadata"]["name"] for node in admin.list("nodes"))[:2]
    assert len(names) == 2, "needs a cluster of two nodes"
    made = [name for name in names if not admin.get("nodecache", name)]
    for name in made:
        operator.create(nodecache(name))
    yield tuple(names)
    for name in made:
        operator.delete("nodecache", name)


@pytest.fixture(scope="module")
def identity(admin, installed, tmp_path_factory):
    """kubectl with a real token; identity("cachewarm-agent", node=...) is bound to a pod there."""
    system = admin.within(SYSTEM)
    folder = tmp_path_factory.mktemp("identities")
    pods = []

    def bound(account: str, node: str) -> tuple[str, ...]:
        pod = system.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"identity-{uuid.uuid4().hex[:8]}"},
                "spec": {
                    "serviceAccountName": account,
                    "nodeName": node,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [
                        {"name": "c", "image": "localhost/none:1", "imagePullPolicy": "Never"}
                    ],
                },
            }
        )["metadata"]
        pods.append(pod["name"])
        return (
            "--bound-object-kind=Pod",
            f"--bound-object-name={pod['name']}",
            f"--bound-object-uid={pod['uid']}",
        )

    def make(account: str, node: str = "") -> Kubectl:
        flags = bound(account, node) if node else ()
        token = system.run("create", "token", account, *flags).strip()
        config = json.loads(system.run("config", "view", "--raw", "--flatten", "-o", "json"))
        user = config["contexts"][0]["context"]["user"]
        config["users"] = [{"name": user, "user": {"token": token}}]
        path = folder / uuid.uuid4().hex
        path.write_text(json.dumps(config))
        return Kubectl(admin._base[0], str(path))

    yield make
    for name in pods:
        system.kill_pod(name)


@pytest.fixture(scope="module")
def agent(identity, nodes) -> Kubectl:
    return identity("cachewarm-agent", nodes[0])


@pytest.fixture(scope="module")
def operator_token(identity) -> Kubectl:
    return identity("cachewarm-operator")


def report(client: Kubectl, node: str) -> str:
    """Returns the response to an agent's status update by dry run."""
    words = ("apply", "--server-side", "--force-conflicts", "--field-manager=cachewarm-agent",
             "--subresource=status", DRY, "-f", "-")
    return answer(client, *words, given=nodecache(node, status={"node": {"gpuType": "cpu"}}))


def test_agent_reports_on_its_own_node(agent, nodes):
    assert report(agent, nodes[0]) == ""


def test_agent_cannot_report_on_another_node(agent, nodes):
    assert f"the agent on {nodes[0]} may not write NodeCache {nodes[1]}" in report(agent, nodes[1])


def test_token_without_node_cannot_report(identity, nodes):
    words = report(identity("cachewarm-agent"), nodes[0])
    assert "the token contains no node name" in words


def test_agent_cannot_write_the_spec(agent, nodes):
    spec = {"spec": {"starts": [{"podUID": "p", "warmupUID": "w", "runAs": "image"}]}}
    words = answer(agent, "apply", "--server-side", DRY, "-f", "-",
                   given=nodecache(nodes[0]) | spec)
    assert 'cannot patch resource "nodecaches"' in words
    assert "forbidden" in answer(agent, "delete", "nc", nodes[0], DRY)
    assert "forbidden" in answer(agent, "create", DRY, "-f", "-", given=nodecache("x"))


@pytest.mark.parametrize("kind", ["secrets", "pods", "nodes", "configmaps", "cachewarmups", "jobs"])
def test_agent_reads_no_other_kind(agent, kind):
    assert f'cannot list resource "{kind}"' in answer(agent, "get", kind, "--all-namespaces")


def test_agent_watches_its_nodecache(agent, nodes):
    words = ("get", "nodecaches", f"--field-selector=metadata.name={nodes[0]}", "-o", "name")
    assert agent.run(*words).strip() == f"nodecache.cachewarm.io/{nodes[0]}"


@pytest.mark.parametrize("kind", ["secrets", "configmaps", "serviceaccounts", "daemonsets"])
def test_operator_cannot_read_other_kinds(operator_token, kind):
    assert f'cannot list resource "{kind}"' in answer(operator_token, "get", kind, "-A")


@pytest.mark.parametrize("kind", ["cachewarmups", "nodecaches", "pods", "nodes", "namespaces",
                                  "deployments", "statefulsets", "jobs",
                                  "poddisruptionbudgets", "services"])
def test_operator_reads_the_kinds_it_needs(operator_token, kind):
    assert answer(operator_token, "get", kind, "-A", "--chunk-size=1", "-o", "name") == ""


def test_operator_cannot_write_the_status_of_a_nodecache(operator_token, nodes):
    assert "forbidden" in report(operator_token, nodes[0])


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "dry-run"},
    "spec": {
        "schedulingGates": [{"name": "cachewarm.io/wait-for-cache"}, {"name": "example.com/other"}],
        "containers": [{"name": "c", "image": "localhost/none:1"}],
    },
}


def test_operator_creates_pods_by_dry_run_only(operator_token):
    assert answer(operator_token, "create", DRY, "-f", "-", given=POD) == ""
    words = answer(operator_token, "create", "-f", "-", given=POD)
    assert "the cachewarm operator may create pods only by dry run" in words


def test_operator_only_releases_and_annotates_pods(kubectl, operator_token):
    kubectl.create(POD)
    client = operator_token.within(kubectl.namespace)
    rule = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}
    preference = [{"weight": 1, "preference": {"matchExpressions": [rule]}}]
    node_affinity = {"preferredDuringSchedulingIgnoredDuringExecution": preference}
    client.patch("pod", "dry-run", [
        {"op": "test", "path": "/spec/schedulingGates/0/name",
         "value": "cachewarm.io/wait-for-cache"},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
        {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": node_affinity}},
        {"op": "add", "path": "/metadata/annotations",
         "value": {"cachewarm.io/released": "ReleasedWarm"}},
    ])
    only = "may change only annotations, scheduling gates and affinity of a pod"
    for patch in (
        {"metadata": {"labels": {"app": "other"}}},
        {"metadata": {"finalizers": ["example.com/stay"]}},
        {"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}]}},
    ):
        words = answer(client, "patch", "pod", "dry-run", "--type=merge", "-p", json.dumps(patch))
        assert only in words, patch
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "localhost/evil:1"}]
    words = answer(client, "patch", "pod", "dry-run", "--type=json", "-p", json.dumps(image))
    assert only in words
    assert "cannot delete" in answer(client, "delete", "pod", "dry-run")


@pytest.mark.parametrize("why,patch", [
    ("only the scheduling gate cachewarm.io/wait-for-cache",
     [{"op": "remove", "path": "/spec/schedulingGates/1"}]),
    ("affinity of a pod only while it releases",
     [{"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": {
         "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
             {"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}}]),
    ("only annotations, scheduling gates and affinity",
     [{"op": "add", "path": "/spec/nodeSelector", "value": {"pool": "other"}}]),
    ("only annotations of cachewarm.io",
     [{"op": "replace", "path": "/metadata/annotations/example.com~1mine", "value": "other"}]),
    ("only annotations of cachewarm.io",
     [{"op": "replace", "path": "/metadata/annotations/cachewarm.io~1warmup", "value": "other"}]),
    ("only annotations of cachewarm.io",
     [{"op": "remove", "path": "/metadata/annotations/example.com~1mine"}]),
])
def test_operator_leaves_the_rest_of_a_held_pod_alone(kubectl, operator_token, why, patch):
    held(kubectl, "whole", annotations={"example.com/mine": "yes", "cachewarm.io/warmup": "llama"})
    client = operator_token.within(kubectl.namespace)
    words = answer(client, "patch", "pod", "whole", "--type=json", "-p", json.dumps(patch))
    assert why in words
    own = [{"op": "add", "path": "/metadata/annotations/cachewarm.io~1held-until",
            "value": "2026-01-01T00:00:00Z"}]
    assert answer(client, "patch", "pod", "whole", "--type=json", DRY, "-p",
                  json.dumps(own + [NOTE])) == ""


GO = {"op": "remove", "path": "/spec/schedulingGates/0"}
LABEL = {"op": "add", "path": "/metadata/labels/example.com~1updated", "value": "yes"}
NOTE = {"op": "add", "path": "/metadata/annotations/example.com~1updated", "value": "yes"}


def held(kubectl: Kubectl, name: str, **metadata: dict) -> None:
    kubectl.create({**POD, "metadata": {"name": name, **metadata}})


@pytest.mark.parametrize("account", ["cachewarm-operator", "cachewarm-release"])
def test_added_labels_are_allowed_only_in_a_release(
        kubectl, identity, account):
    held(kubectl, "labelled", labels={"app": "mine"})
    held(kubectl, "bare")
    client = identity(account).within(kubectl.namespace)
    reserved = {"op": "add", "path": "/metadata/labels/cachewarm.io~1builder-key", "value": "k"}
    for patch in (
        [LABEL],
        [{"op": "remove", "path": "/spec/schedulingGates/1"}, LABEL],
        [GO, reserved],
        [GO, LABEL, {"op": "replace", "path": "/metadata/labels/app", "value": "other"}],
        [GO, LABEL, {"op": "remove", "path": "/metadata/labels/app"}],
    ):
        words = answer(client, "patch", "pod", "labelled", "--type=json", "-p", json.dumps(patch))
        assert "denied request" in words, patch
    client.patch("pod", "labelled", [GO, LABEL])
    labels = {"op": "add", "path": "/metadata/labels", "value": {"example.com/updated": "yes"}}
    client.patch("pod", "bare", [GO, labels])
    again = json.dumps([LABEL | {"value": "again"}])
    words = answer(client, "patch", "pod", "bare", "--type=json", "-p", again)
    assert "denied request" in words, "the pod is released"


def test_added_annotations_are_allowed_in_a_release_job(kubectl, identity):
    held(kubectl, "noted", annotations={"example.com/mine": "yes"})
    client = identity("cachewarm-release").within(kubectl.namespace)
    reserved = {"op": "add", "path": "/metadata/annotations/cachewarm.io~1held-until", "value": "x"}
    mine = {"op": "replace", "path": "/metadata/annotations/example.com~1mine", "value": "no"}
    for patch in ([NOTE], [GO, reserved], [GO, NOTE, mine]):
        words = answer(client, "patch", "pod", "noted", "--type=json", "-p", json.dumps(patch))
        assert "cachewarm release" in words, patch
    client.patch("pod", "noted", [GO, NOTE])


def builder_job(name: str = "b", **pod: object) -> dict:
    """A Job as the operator creates it, with `pod` merged into the spec of its pod."""
    owner = {"apiVersion": "cachewarm.io/v1alpha1", "kind": "CacheWarmup", "name": "w",
             "uid": "uid", "controller": True}
    spec = {
        "restartPolicy": "Never",
        "priorityClassName": "cachewarm-builder",
        "readinessGates": [{"conditionType": "cachewarm.io/serving"}],
        "containers": [{"name": "c", "image": "localhost/none:1"}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"cachewarm.io/builder-warmup": "uid"},
                     "ownerReferences": [owner]},
        "spec": {"suspend": True, "template": {"spec": spec | pod}},
    }


def test_operator_writes_only_builder_jobs(kubectl, operator_token):
    client = operator_token.within(kubectl.namespace)
    job = builder_job("j")
    job["metadata"] = {"name": "j", "labels": {}}
    words = answer(client, "create", "-f", "-", given=job)
    assert "only Jobs with the label cachewarm.io/builder-warmup" in words
    kubectl.create(job)
    assert "only Jobs with the label" in answer(client, "delete", "job", "j", "--wait=false")
    assert answer(client, "create", DRY, "-f", "-", given=builder_job()) == ""


FOREIGN_OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w", "uid": "uid"}
PRIVILEGED = {"name": "c", "image": "localhost/none:1", "securityContext": {"privileged": True}}


@pytest.mark.parametrize("why,change", [
    ("whose one owner is the CacheWarmup", lambda job: job["metadata"].pop("ownerReferences")),
    ("whose one owner is the CacheWarmup",
     lambda job: job["metadata"].update(ownerReferences=[FOREIGN_OWNER])),
    ("whose one owner is the CacheWarmup",
     lambda job: job["metadata"]["labels"].update({"cachewarm.io/builder-warmup": "other"})),
    ("the priority class cachewarm-builder",
     lambda job: job["spec"]["template"]["spec"].pop("priorityClassName")),
    ("the readiness gate cachewarm.io/serving",
     lambda job: job["spec"]["template"]["spec"].pop("readinessGates")),
    ("the restart policy Never",
     lambda job: job["spec"]["template"]["spec"].update(restartPolicy="OnFailure")),
    ("privileged containers or host namespaces",
     lambda job: job["spec"]["template"]["spec"].update(hostPID=True)),
    ("privileged containers or host namespaces",
     lambda job: job["spec"]["template"]["spec"].update(hostNetwork=True)),
    ("privileged containers or host namespaces",
     lambda job: job["spec"]["template"]["spec"].update(containers=[PRIVILEGED])),
    ("privileged containers or host namespaces",
     lambda job: job["spec"]["template"]["spec"].update(
         initContainers=[PRIVILEGED | {"name": "i"}])),
])
def test_operator_creates_no_job_beyond_a_builder(kubectl, operator_token, why, change):
    client = operator_token.within(kubectl.namespace)
    job = builder_job()
    change(job)
    assert why in answer(client, "create", DRY, "-f", "-", given=job)


@pytest.fixture
def granted(kubectl):
    """granted(name, verb, resource) grants a right in all namespaces to a service account of the
    test's namespace. An account needs no object for that."""
    made = []

    def grant(account: str, verb: str, resource: str) -> None:
        name = f"{kubectl.namespace}-{account}"
        made.append(name)
        kubectl.run("create", "clusterrole", name, f"--verb={verb}", f"--resource={resource}")
        kubectl.run("create", "clusterrolebinding", name, f"--clusterrole={name}",
                    f"--serviceaccount={kubectl.namespace}:{account}")

    yield grant
    for name in made:
        kubectl.delete("clusterrolebinding", name)
        kubectl.delete("clusterrole", name)


@pytest.mark.parametrize("why,verb,resource", [
    ("may list the Secrets of all namespaces", "list", "secrets"),
    ("may create pods in all namespaces", "create", "pods"),
])
def test_operator_creates_no_job_of_a_powerful_service_account(
        kubectl, operator_token, granted, why, verb, resource):
    client = operator_token.within(kubectl.namespace)
    granted("powerful", verb, resource)
    granted("modest", "get", "configmaps")

    def refused() -> bool:
        job = builder_job(serviceAccountName="powerful")
        return why in answer(client, "create", DRY, "-f", "-", given=job)

    wait_for("the Job is refused", refused, 30, kubectl)
    for account in ("modest", "default"):
        job = builder_job(serviceAccountName=account)
        assert answer(client, "create", DRY, "-f", "-", given=job) == "", account


@pytest.mark.parametrize("namespace", ["kube-system", SYSTEM])
def test_operator_creates_no_job_beside_the_control_plane(operator_token, namespace):
    words = answer(operator_token.within(namespace), "create", DRY, "-f", "-", given=builder_job())
    assert "no Job in kube-system or in its own namespace" in words


def mounting(path: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mounts"},
        "spec": {
            "volumes": [{"name": "v", "hostPath": {"path": path}}],
            "containers": [{"name": "c", "image": "localhost/none:1"}],
        },
    }


@pytest.mark.parametrize("path", [
    "/var/lib/cachewarm", "/var/lib/cachewarm/", "/var/lib/cachewarm/.gen/x",
    "/var/lib/cachewarm/elsewhere/llama/u/image", "//var//lib/./cachewarm/elsewhere",
])
def test_pod_cannot_mount_the_directory_of_another_namespace(kubectl, path):
    words = answer(kubectl, "create", DRY, "-f", "-", given=mounting(path))
    assert f"must be below /var/lib/cachewarm/{kubectl.namespace}" in words


def test_pod_mounts_directories_of_its_own_namespace_and_elsewhere(kubectl):
    for path in (f"/var/lib/cachewarm/{kubectl.namespace}/llama/u/image", "/var/lib/cachewarm2",
                 "/usr", "/"):
        assert answer(kubectl, "create", DRY, "-f", "-", given=mounting(path)) == "", path


def test_operator_writes_only_warmups_of_annotations(kubectl, operator_token):
    client = operator_token.within(kubectl.namespace)
    thing = warmup("asked")
    words = answer(client, "create", "-f", "-", given=thing)
    assert "only with one owner" in words
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "x"}
    thing["metadata"]["ownerReferences"] = [owner]
    assert answer(client, "create", DRY, "-f", "-", given=thing) == ""
    denied = "only a CacheWarmup that it created and that has a time of removal or expiry"
    created, time = {"cachewarm.io/requested-spec": "x"}, "2026-01-01T00:00:00Z"
    for name, marks in (
        ("removed", {"cachewarm.io/removal-requested-at": time}),
        ("expired", {"cachewarm.io/expires-at": time}),
    ):
        kubectl.create(warmup(name))
        for incomplete in ({}, created, marks):
            both = {mark: None for mark in created | marks} | incomplete
            kubectl.patch("cw", name, {"metadata": {"annotations": both}})
            assert denied in answer(client, "delete", "cw", name, "--wait=false"), incomplete
        kubectl.patch("cw", name, {"metadata": {"annotations": created | marks}})
        assert answer(client, "delete", "cw", name, "--wait=false") == ""


def test_only_operator_and_agents_write_status(kubectl, nodes):
    """Also denies administrators, because the operator trusts every status."""
    kubectl.apply(warmup())
    status = json.dumps({"status": {"observedGeneration": 9}})
    words = answer(kubectl, "patch", "cw", "llama", "--subresource=status", "--type=merge", DRY,
                   "-p", status)
    assert "only the cachewarm operator may write the status of a CacheWarmup" in words
    assert "only the agent on a node may write the status of its NodeCache" in report(
        kubectl, nodes[0])
    words = answer(kubectl, "create", DRY, "-f", "-", given=nodecache("planted"))
    assert "only the cachewarm operator may write the spec of a NodeCache" in words
    spec = json.dumps({"spec": {"warmups": [{"uid": "u", "namespace": "n", "name": "n"}]}})
    words = answer(kubectl, "patch", "nc", nodes[0], "--type=merge", DRY, "-p", spec)
    assert "only the cachewarm operator may write the spec of a NodeCache" in words


def test_administrator_may_label_and_delete_a_nodecache(admin, nodes):
    assert answer(admin, "label", "nc", nodes[0], "example.com/a=b", DRY) == ""
    assert answer(admin, "delete", "nc", nodes[0], DRY) == ""


@pytest.mark.parametrize("role,verbs", [
    ("view", {"get": "yes", "create": "no"}),
    ("edit", {"get": "yes", "create": "yes", "delete": "yes"}),
])
def test_roles_of_a_namespace_cover_warmups(kubectl, role, verbs):
    kubectl.run("create", "rolebinding", "r", f"--clusterrole={role}", "--user=ann")
    ann = impersonating(kubectl, "ann")
    for verb, wanted in verbs.items():
        said = ann.run("auth", "can-i", verb, "cachewarmups", check=False).strip()
        assert said == wanted, verb
    assert ann.run("auth", "can-i", "patch", "cachewarmups", "--subresource=status",
                   check=False).strip() == "no"
