# SPDX-License-Identifier: Apache-2.0
"""The comparison of rules and audit log reports each unused right and each missing one, and nothing
else. No cluster: the events are written here, in the format of audit.k8s.io/v1."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
from harness import definitions, rights
from harness.cluster import REPOSITORY
from harness.rights import OPERATOR, Rare, Requests, Right, compare, grants, report

COMPARE = REPOSITORY / "tests" / "e2e" / "rights" / "compare"
LIST = Right(OPERATOR, "", "pods", "list")
PATCH = Right(OPERATOR, "cachewarm.io", "nodecaches", "patch")
CREATE = replace(PATCH, verb="create")
STATUS = Right(OPERATOR, "cachewarm.io", "cachewarmups/status", "patch")
LEASE = Right(OPERATOR, "coordination.k8s.io", "leases", "update", "cachewarm-operator",
              "cachewarm-system")


def event(right: Right, code: int = 200, decision: str = "allow", message: str = "",
          agent: str = "cachewarm-operator", **more: object) -> str:
    """A line of the audit log, as the API server writes it at the level Metadata."""
    namespace, _, account = right.account.partition("/")
    resource, _, subresource = right.resource.partition("/")
    about = {"resource": resource, "namespace": right.namespace, "name": right.name,
             "apiGroup": right.group, "apiVersion": "v1", "subresource": subresource}
    status = {"metadata": {}, "code": code}
    if message:
        status |= {"status": "Failure", "message": message, "reason": "Forbidden"}
    return json.dumps({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "4f9fb1f2-3c5d-4d0e-b6a4-0f5a6a1d3a55",
        "stage": "ResponseComplete",
        "requestURI": f"/apis/{right.group}/v1/{resource}",
        "verb": right.verb,
        "user": {
            "username": f"system:serviceaccount:{namespace}:{account}",
            "uid": "b3a1",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"],
        },
        "sourceIPs": ["10.244.1.7"],
        "userAgent": agent,
        "objectRef": {key: value for key, value in about.items() if value},
        "responseStatus": status,
        "requestReceivedTimestamp": "2026-11-26T12:00:00.000000Z",
        "stageTimestamp": "2026-11-26T12:00:00.010000Z",
        "annotations": {"authorization.k8s.io/decision": decision,
                        "authorization.k8s.io/reason": "RBAC: ..."},
        **more,
    })


def requests(*lines: str) -> Requests:
    found = Requests()
    found.add(lines)
    return found


def compared(granted: list[Right], *lines: str, rare: tuple[Rare, ...] = ()) -> rights.Comparison:
    return compare(granted, requests(*lines), rare)


def test_used_rights_are_no_failure():
    result = compared([LIST, STATUS], event(LIST), event(replace(STATUS, name="w", namespace="n")))
    assert result.failures == 0 and not result.rare and not result.not_in_force


def test_unused_right_is_a_failure():
    result = compared([LIST, PATCH], event(LIST))
    assert result.unused == [PATCH] and result.failures == 1
    assert f"unused: {PATCH}" in report(result, [LIST, PATCH], requests(event(LIST)), True)


@pytest.mark.parametrize("other", [
    {"account": "cachewarm-system/cachewarm-agent"},
    {"group": "batch"},
    {"resource": "pods/status"},
    {"verb": "watch"},
])
def test_request_that_differs_uses_another_right(other: dict):
    assert compared([LIST], event(replace(LIST, **other))).unused == [LIST]


@pytest.mark.parametrize("other", [{"name": "another"}, {"namespace": "kube-system"}, {"name": ""}])
def test_right_to_one_object_is_used_only_by_requests_for_it(other: dict):
    assert compared([LEASE], event(LEASE)).unused == []
    assert compared([LEASE], event(replace(LEASE, **other))).unused == [LEASE]


def test_request_without_a_rule_is_missing():
    secret = Right(OPERATOR, "", "secrets", "get", "x", "default")
    result = compared([LIST], event(LIST), event(secret, 403, "forbid"))
    assert result.missing == [secret] and result.failures == 1
    text = report(result, [LIST], requests(event(secret, 403, "forbid")), False)
    kind = "missing, no rule grants it: cachewarm-system/cachewarm-operator: get secrets"
    assert f"{kind}: 1 requests, for example for default/x" in text


def test_request_without_an_optional_right_is_not_missing():
    (log,) = rights.OPTIONAL
    line = event(replace(log, name="x", namespace="default"), 403, "forbid")
    assert compare([LIST], requests(line), (), rights.OPTIONAL).missing == []
    assert len(compare([LIST], requests(line), ()).missing) == 1


def test_forbidden_request_does_not_use_its_right():
    result = compared([LIST], event(LIST, 403, "forbid"))
    assert result.unused == [LIST]
    assert result.missing == [] and result.not_in_force == [LIST], "the API server was starting"


def test_right_to_another_object_does_not_cover_a_forbidden_request():
    other = replace(LEASE, name="other")
    assert compared([LEASE], event(LEASE), event(other, 403, "forbid")).missing == [other]


def test_rejection_by_a_policy_uses_the_right():
    words = 'pods "p" is forbidden: ValidatingAdmissionPolicy "x" denied request: frozen'
    result = compared([LIST], event(LIST, 403, "allow", words))
    assert result.failures == 0 and not result.not_in_force


def test_apply_that_creates_uses_both_verbs():
    assert compared([CREATE, PATCH], event(PATCH)).unused == [CREATE]
    assert compared([CREATE, PATCH], event(PATCH, 201)).unused == []


def test_apply_without_the_verb_create_is_missing():
    words = ('nodecaches.cachewarm.io "node-a" is forbidden: User '
             '"system:serviceaccount:cachewarm-system:cachewarm-operator" cannot create resource '
             '"nodecaches" in API group "cachewarm.io" at the cluster scope')
    assert compared([PATCH], event(PATCH, 403, "allow", words)).missing == [CREATE]


@pytest.mark.parametrize("change", [
    {"agent": "kubectl/v1.36.1 (linux/amd64) kubernetes/abc"},
    {"agent": "Go-http-client/1.1"},
    {"impersonatedUser": {"username": "ann"}},
    {"user": {"username": "system:admin"}},
    {"objectRef": {}},
])
def test_requests_of_tests_and_for_no_object_do_not_count(change: dict):
    for decision in ("allow", "forbid"):
        result = compared([LIST], event(LIST, decision=decision, **change))
        assert result.unused == [LIST] and not result.missing and not result.not_in_force


def test_truncated_line_is_counted_and_skipped():
    found = requests(event(LIST)[:40], event(LIST))
    assert compare([LIST], found, ()).failures == 0
    assert "1 unreadable lines" in report(compare([LIST], found, ()), [LIST], found, True)


def test_rare_right_may_be_unused_but_must_be_granted():
    rare = Rare(PATCH, "reason", "tests/x.cc")
    result = compared([LIST, PATCH], event(LIST), rare=(rare,))
    assert result.failures == 0 and result.rare == [rare]
    assert compared([LIST], event(LIST), rare=(rare,)).outdated == [rare]


def role(kind: str, name: str, *rules: dict, **metadata: str) -> dict:
    return {"kind": kind, "metadata": {"name": name, **metadata}, "rules": list(rules)}


def bound(kind: str, of: str, name: str, **metadata: str) -> dict:
    account = {"kind": "ServiceAccount", "name": "a", "namespace": "s"}
    return {"kind": kind, "metadata": {"name": "b", **metadata},
            "roleRef": {"kind": of, "name": name}, "subjects": [account]}


def test_each_verb_resource_and_name_of_a_rule_is_a_right():
    rule = {"apiGroups": [""], "resources": ["pods", "secrets"], "resourceNames": ["x", "y"],
            "verbs": ["get", "update"]}
    found = grants([role("Role", "r", rule, namespace="n"),
                    bound("RoleBinding", "Role", "r", namespace="n"),
                    role("ClusterRole", "for-users", rule)])
    assert len(found) == 8
    assert Right("s/a", "", "secrets", "update", "y", "n") in found


def test_binding_limits_a_cluster_role_to_its_namespace():
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list"]}
    things = [role("ClusterRole", "r", rule), bound("RoleBinding", "ClusterRole", "r",
                                                    namespace="n")]
    assert grants(things) == [Right("s/a", "apps", "deployments", "list", "", "n")]


@pytest.mark.parametrize("where", ["apiGroups", "resources", "verbs"])
def test_wildcard_is_refused(where: str):
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], where: ["*"]}
    with pytest.raises(ValueError, match=r"a rule with \*"):
        grants([role("ClusterRole", "r", rule), bound("ClusterRoleBinding", "ClusterRole", "r")])


@cache
def installed() -> list[Right]:
    return grants(definitions.objects().values())


def test_installed_rules_grant_every_rare_right():
    granted = installed()
    assert {right.account.partition("/")[2] for right in granted} == {
        "cachewarm-operator", "cachewarm-agent", "cachewarm-release"}
    assert compare(granted, Requests(), rights.RARE).outdated == []


@pytest.mark.parametrize("rare", rights.RARE, ids=lambda rare: str(rare.right))
def test_rare_right_has_a_reason_and_a_test(rare: Rare):
    assert rare.reason and (REPOSITORY / rare.test).is_file()


def run(tmp_path, *flags: str, lines: list[str]) -> subprocess.CompletedProcess:
    log = tmp_path / "audit.log"
    log.write_text("".join(line + "\n" for line in lines))
    return subprocess.run([sys.executable, COMPARE, *flags, log], capture_output=True, text=True)


def test_program_fails_for_unused_rights_only_after_all_tests(tmp_path):
    every = [event(right) for right in installed()]
    assert run(tmp_path, "--complete", lines=every).returncode == 0
    for flags, status in ((("--complete",), 1), ((), 0)):
        done = run(tmp_path, *flags, lines=every[1:])
        assert done.returncode == status, done.stdout + done.stderr
        assert str(installed()[0]) in done.stdout


def test_program_fails_for_missing_rights_always(tmp_path):
    secret = event(Right(OPERATOR, "", "secrets", "list"), 403, "forbid")
    assert run(tmp_path, lines=[secret]).returncode == 1
