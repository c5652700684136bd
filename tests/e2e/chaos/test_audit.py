# SPDX-License-Identifier: Apache-2.0
"""The audit log becomes changes of objects, none of them twice or in the wrong order. No cluster:
the events are written here, in the format of audit.k8s.io/v1."""

import json
import sys

import pytest
from harness.chaos.audit import KINDS, Changes
from harness.cluster import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests" / "cluster"))
from launcher import audit as cluster_audit  # noqa: E402

OPERATOR = "system:serviceaccount:cachewarm-system:cachewarm-operator"


def pod(version: int, uid: str = "p", **metadata: object) -> dict:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p", "namespace": "n", "uid": uid, "resourceVersion": str(version),
                     **metadata},
        "spec": {},
        "status": {},
    }


def line(verb: str, answer: dict | None, by: str = OPERATOR, code: int = 200, name: str = "p",
         **more: object) -> str:
    about = {"resource": "pods", "namespace": "n", "name": name, "apiVersion": "v1"}
    return json.dumps({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/n/pods/p",
        "verb": verb,
        "user": {"username": by},
        "objectRef": {**about, **more.pop("about", {})},
        "responseStatus": {"metadata": {}, "code": code},
        "responseObject": answer,
        "stageTimestamp": "2026-11-26T12:00:00.250000Z",
        **more,
    }, separators=(",", ":"))


def read(*lines: str) -> list[tuple[str, str]]:
    changes = Changes()
    return [(seen.type, seen.uid) for each in lines for seen in changes.read(each)]


def test_write_becomes_a_change_with_its_time_user_and_body():
    body = {"metadata": {"annotations": {"a": "b"}}}
    (seen,) = Changes().read(line("patch", pod(3), requestObject=body))
    assert (seen.type, seen.kind, seen.by, seen.request) == ("MODIFIED", "Pod", OPERATOR, body)
    assert seen.at == 1795694400.25
    assert read(line("create", pod(3), code=201)) == [("ADDED", "p")]


def test_status_written_by_a_kubelet_is_a_change_of_the_pod():
    text = line("patch", pod(3), by="system:node:node-a", about={"subresource": "status"})
    (seen,) = Changes().read(text)
    assert seen.kind == "Pod" and seen.by == "system:node:node-a"


@pytest.mark.parametrize("change", [
    {"code": 403}, {"code": 404}, {"stage": "ResponseStarted"}, {"stage": "Panic"},
    {"level": "Metadata"}, {"requestURI": "/api/v1/namespaces/n/pods?dryRun=All"},
    {"about": {"resource": "services"}}, {"about": {"subresource": "binding"}},
])
def test_other_requests_change_nothing(change: dict):
    assert read(line("patch", pod(3), **change)) == []


def test_older_version_is_left_out():
    lines = (line("create", pod(3)), line("patch", pod(7)), line("patch", pod(5)))
    assert read(*lines) == [("ADDED", "p"), ("MODIFIED", "p")]


def test_pod_with_a_grace_period_stays_until_its_kubelet_deletes_it():
    dying = {"deletionTimestamp": "2026-11-26T12:00:00Z"}
    lines = (
        line("create", pod(3)),
        line("delete", pod(4, deletionGracePeriodSeconds=30, **dying)),
        line("delete", pod(5, deletionGracePeriodSeconds=0, **dying), by="system:node:node-a"),
    )
    assert read(*lines) == [("ADDED", "p"), ("MODIFIED", "p"), ("DELETED", "p")]


def test_deleted_object_does_not_come_back_with_a_late_line():
    lines = (line("create", pod(3)), line("delete", pod(5)), line("patch", pod(4)))
    assert read(*lines) == [("ADDED", "p"), ("DELETED", "p")]


def test_deletion_that_answers_only_a_uid_is_a_change():
    status = {"kind": "Status", "status": "Success", "details": {"name": "j", "uid": "j-uid"}}
    job = {"resource": "jobs", "apiGroup": "batch"}
    (seen,) = Changes().read(line("delete", status, name="j", about=job))
    assert (seen.type, seen.kind, seen.uid) == ("DELETED", "Job", "j-uid")


def test_new_object_under_an_old_name_ends_the_old_one():
    lines = (line("create", pod(3)), line("create", pod(9, uid="q")))
    assert read(*lines) == [("ADDED", "p"), ("DELETED", "p"), ("ADDED", "q")]


def test_deletion_of_a_collection_ends_its_objects_unless_it_selects():
    all_of_them = line("deletecollection", None, name="")
    assert read(line("create", pod(3)), all_of_them)[1:] == [("DELETED", "p")]
    some = line("deletecollection", None, name="", requestURI="/x?labelSelector=a%3Db")
    assert read(line("create", pod(3)), some)[1:] == []


def test_truncated_line_does_not_hide_the_next_one():
    changes = Changes()
    (seen,) = changes.read(line("create", pod(3))[:200] + line("create", pod(4, uid="q")))
    assert seen.uid == "q" and changes.unreadable == 0
    assert changes.read(line("create", pod(5))[:200]) == [] and changes.unreadable == 1


def test_list_ends_and_updates_objects():
    changes = Changes()
    changes.read(line("create", pod(3)))
    assert [s.type for s in changes.listed("Pod", [pod(4)], "9", 1.0)] == ["MODIFIED"]
    assert [s.type for s in changes.listed("Node", [], "9", 1.0)] == []
    assert [s.type for s in changes.listed("Pod", [], "9", 1.0)] == ["DELETED"]


def test_list_does_not_end_an_object_that_is_newer():
    changes = Changes()
    changes.read(line("create", pod(12)))
    assert changes.listed("Pod", [], "9", 1.0) == []


def test_policy_of_the_test_cluster_logs_every_kind_with_its_answer():
    first = cluster_audit.policy("objects")["rules"][0]
    assert first["level"] == "RequestResponse" and "users" not in first
    logged = {(group["group"], resource) for group in first["resources"]
              for resource in group["resources"]}
    assert set(KINDS) | {("", "pods/status"), ("", "nodes/status")} == logged
    (accounts,) = cluster_audit.policy("accounts")["rules"]
    assert accounts["level"] == "Metadata"
