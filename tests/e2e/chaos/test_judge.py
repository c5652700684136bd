# SPDX-License-Identifier: Apache-2.0
"""The judge of the chaos: it must see each thing that must never be, and nothing else. No
cluster."""

import copy
from datetime import datetime, timezone

import pytest
from harness.chaos.excuses import Excuses, Span
from harness.chaos.judge import (
    AWAY_MAX,
    BACK_SECONDS,
    BOUND,
    BUILDERS,
    DISK_SECONDS,
    FAILED,
    GATE,
    GRACE,
    HELD,
    OVERLAP,
    START,
    Judge,
    Seen,
)

BORN = 1_800_000_000.0
KEY = "0123456789abcdef" * 4


def stamp(seconds: float) -> str:
    moment = datetime.fromtimestamp(BORN + seconds, timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(uid="p", held=False, node="", until: float | None = None, **labels: str) -> dict:
    notes = {"cachewarm.io/warmup": "w"}
    if until is not None:
        notes["cachewarm.io/held-until"] = stamp(until)
    return {
        "kind": "Pod",
        "metadata": {
            "name": uid,
            "namespace": "n",
            "uid": uid,
            "creationTimestamp": stamp(0),
            "annotations": notes,
            "labels": labels,
        },
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            **({"schedulingGates": [{"name": "other"}, {"name": GATE}]} if held else {}),
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def builder(uid: str, job: str = "", node="node-a", key=KEY, warmup="w-uid") -> dict:
    marks = {"cachewarm.io/builder-warmup": warmup, "cachewarm.io/builder-key": key[:32]}
    made = pod(uid, node=node)
    made["metadata"]["labels"] = marks
    made["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": job or f"job-of-{uid}"}]
    return made


def node(name: str, ready: bool) -> dict:
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": name},
        "status": {"conditions": conditions},
    }


def asks(node_name: str, *uids: str, key=KEY) -> dict:
    captures = [
        {"id": uid, "warmupUID": "w-uid", "podUID": uid, "runAs": "image", "key": key}
        for uid in uids
    ]
    return {
        "kind": "NodeCache",
        "metadata": {"name": node_name, "uid": f"cache-{node_name}"},
        "spec": {"captures": captures},
    }


def job(uid: str) -> dict:
    return {"kind": "Job", "metadata": {"name": uid, "namespace": "n", "uid": uid}}


OPERATOR = "system:serviceaccount:cachewarm-system:cachewarm-operator"
KUBELET = "system:node:node-a"


class Court:
    """A judge and a clock that starts with the creation of every pod."""

    def __init__(self, longest_hold: float = 60):
        self.excuses = Excuses()
        self.judge = Judge(longest_hold, self.excuses)

    def see(
        self, at: float, *things: dict, type: str = "MODIFIED", by="", request: object = None
    ) -> "Court":
        for thing in things:
            self.judge.see(Seen(BORN + at, type, copy.deepcopy(thing), by, request))
        return self

    def look(self, at: float) -> "Court":
        self.judge.look(BORN + at)
        return self

    def excuse(self, begin: float, end: float | None = None, scope="") -> Span:
        span = self.excuses.begin(BORN + begin, scope)
        if end is not None:
            self.excuses.end(span, BORN + end)
        return span

    def kill_operators(self, at: float) -> "Court":
        self.excuses.operators_killed.append(BORN + at)
        return self

    @property
    def rules(self) -> list[str]:
        return [each.rule for each in self.judge.violations]


class TestHolds:
    def test_release_by_the_deadline_is_no_violation(self):
        court = Court().see(0, pod(held=True)).see(3, pod(held=True, until=30)).look(20)
        court.see(30 + GRACE, pod(until=30))
        assert court.look(500).rules == []
        assert court.judge.tally.held == 1
        assert court.judge.tally.latest == GRACE

    def test_overdue_pod_is_reported_without_an_event(self):
        court = Court().see(0, pod(held=True, until=30))
        assert court.look(30 + GRACE).rules == []
        assert court.look(30.1 + GRACE).rules == [HELD]
        assert court.look(99).rules == [HELD], "reported once"
        assert court.judge.now_held == ["n/p"]

    def test_lasting_violations_are_reported_again_on_request(self):
        court = Court().see(0, pod(held=True, until=30), builder("one"), builder("two"))
        assert court.look(40).rules == [HELD, BUILDERS]
        court.judge.report_again()
        assert court.look(41).rules == [HELD, BUILDERS, HELD, BUILDERS]

    def test_late_release_is_a_violation(self):
        court = Court().see(0, pod(held=True, until=30)).see(36, pod(until=30))
        assert court.rules == [HELD]
        assert "6.0 s past its deadline" in str(court.judge.violations[0])

    def test_postponed_deadline_does_not_count(self):
        court = Court().see(3, pod(held=True, until=30)).see(29, pod(held=True, until=50))
        assert court.look(36).rules == [HELD]

    def test_longest_hold_limits_a_pod_without_deadline(self):
        assert Court(20).see(0, pod(held=True)).look(24).rules == []
        assert Court(20).see(0, pod(held=True)).look(26).rules == [HELD]

    def test_unreadable_deadline_is_ignored(self):
        thing = pod(held=True)
        thing["metadata"]["annotations"]["cachewarm.io/held-until"] = "never"
        assert Court(20).see(0, thing).look(26).rules == [HELD]

    def test_deadline_beyond_the_longest_hold_is_ignored(self):
        court = Court(60).see(0, pod(held=True, until=9000))
        assert court.look(64).rules == []
        assert court.look(66).rules == [HELD]

    def test_deleted_pod_is_not_held(self):
        dying = pod(held=True)
        dying["metadata"]["deletionTimestamp"] = stamp(9)
        court = Court(20).see(0, pod("a", held=True), pod("b", held=True))
        court.see(10, pod("a", held=True), type="DELETED")
        dying["metadata"].update(name="b", uid="b")
        assert court.see(10, dying).look(500).rules == []

    def test_other_gates_are_ignored(self):
        thing = pod()
        thing["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
        assert Court(20).see(0, thing).look(500).rules == []

    def test_excused_seconds_do_not_count(self):
        court = Court(20)
        court.excuse(22, 40)
        court.see(0, pod(held=True))
        assert court.look(20 + 18 + GRACE).rules == []
        assert court.look(20 + 18 + GRACE + 0.1).rules == [HELD]
        assert court.judge.tally.latest_excused == 18

    def test_excuse_before_the_deadline_does_not_count(self):
        court = Court(20)
        court.excuse(1, 19)
        assert court.see(0, pod(held=True)).look(26).rules == [HELD]

    def test_open_excuse_lasts_until_now(self):
        court = Court(20)
        span = court.excuse(20)
        assert court.see(0, pod(held=True)).look(500).rules == []
        court.excuses.end(span, BORN + 500)
        assert court.look(506).rules == [HELD]

    def test_excuse_of_a_namespace_does_not_count_elsewhere(self):
        court = Court(20)
        court.excuse(20, 400, "namespace other")
        assert court.see(0, pod(held=True)).look(26).rules == [HELD]
        court = Court(20)
        court.excuse(20, 400, "namespace n")
        assert court.see(0, pod(held=True)).look(400).rules == []

    def test_release_by_cachewarm_is_counted(self):
        court = Court().see(0, pod(held=True)).see(9, pod(), by=OPERATOR)
        court.see(0, pod("q", held=True)).see(9, pod("q"), by="ann")
        assert court.judge.tally.releases == 1

    def test_limited_excuse_ends_at_its_limit(self):
        excuses = Excuses()
        excuses.begin(10, limit=5)
        assert excuses.within(0, 100) == 5
        assert excuses.ended == 0

    def test_overlapping_excuses_count_once(self):
        excuses = Excuses()
        for begin, end in ((0, 10), (5, 12), (6, 7), (20, 30)):
            excuses.end(excuses.begin(begin), end)
        assert excuses.within(0, 100) == 22
        assert excuses.within(8, 25) == 9
        assert excuses.within(13, 19) == 0
        assert excuses.within(40, 30) == 0


class TestBuilders:
    def test_consecutive_builders_are_no_violation(self):
        court = Court().see(0, builder("one")).look(10)
        done = builder("one")
        done["status"]["phase"] = "Failed"
        court.see(20, done).see(21, builder("two")).look(99)
        assert court.rules == []
        assert court.judge.tally.builders == 2

    def test_two_jobs_for_one_key_are_a_violation(self):
        court = Court().see(0, builder("one")).see(1, builder("two"))
        assert court.look(1 + OVERLAP).rules == []
        assert court.look(1.1 + OVERLAP).rules == [BUILDERS]
        assert "n/one, n/two" in str(court.judge.violations[0])
        assert court.look(99).rules == [BUILDERS], "reported once"

    def test_job_and_captured_first_pod_are_a_violation(self):
        court = Court().see(0, pod("first", node="node-a"), asks("node-a", "first"))
        court.see(1, builder("job", node="node-b"))
        assert court.look(9).rules == [BUILDERS]

    def test_two_captured_first_pods_are_a_violation(self):
        court = Court().see(0, pod("a", node="node-a"), pod("b", node="node-b"))
        court.see(1, asks("node-a", "a"), asks("node-b", "b"))
        assert court.look(9).rules == [BUILDERS]

    def test_capture_request_removed_in_time_is_no_violation(self):
        court = Court().see(0, pod("a", node="node-a"), pod("b", node="node-b"))
        court.see(1, asks("node-a", "a"), asks("node-b", "b")).see(3, asks("node-a"))
        assert court.look(99).rules == []

    def test_capture_request_for_a_deleted_pod_is_ignored(self):
        court = Court().see(0, pod("a", node="node-a"), pod("b", node="node-b"))
        court.see(1, asks("node-a", "a"), asks("node-b", "b"))
        court.see(2, pod("a", node="node-a"), type="DELETED")
        assert court.look(99).rules == []

    def test_different_keys_and_warmups_have_separate_builders(self):
        other = "f" * 64
        court = Court().see(0, builder("one"), builder("two", key=other))
        court.see(1, builder("three", warmup="w2"))
        assert court.look(99).rules == []

    @pytest.mark.parametrize("ending", ["pod", "job", "node"])
    def test_terminating_builder_is_not_live(self, ending: str):
        court = Court().see(0, builder("one", job="j", node="node-b"), node("node-b", True))
        if ending == "pod":
            dying = builder("one", job="j", node="node-b")
            dying["metadata"]["deletionTimestamp"] = stamp(1)
            court.see(1, dying)
        elif ending == "job":
            court.see(1, job("j"), type="DELETED")
        else:
            court.see(1, node("node-b", False))
        assert court.see(2, builder("two")).look(99).rules == []

    def test_returning_node_restores_its_builder(self):
        court = Court().see(0, builder("one", node="node-b"), node("node-b", False))
        court.see(1, builder("two")).look(50)
        assert court.see(60, node("node-b", True)).look(70).rules == [BUILDERS]


class TestBoundPods:
    def test_unbound_pod_may_change(self):
        court = Court().see(0, pod(held=True)).see(1, pod(held=True, until=60)).see(2, pod())
        later = pod(node="node-a")
        later["metadata"]["annotations"]["cachewarm.io/released"] = "ReleasedWarm"
        assert court.see(3, later).see(4, later).rules == []
        assert court.judge.tally.bound == 1

    @pytest.mark.parametrize("where,value", [
        (("metadata", "annotations", "cachewarm.io/released"), "ReleasedWarm"),
        (("metadata", "annotations", "cachewarm.io/warmup"), "other"),
        (("metadata", "labels"), {"a": "b"}),
        (("spec", "affinity"), {"nodeAffinity": {}}),
        (("spec", "containers"), [{"name": "c", "image": "other"}]),
    ])
    def test_change_of_a_bound_pod_is_a_violation(self, where: tuple, value: object):
        changed = pod(node="node-a")
        inside = changed
        for step in where[:-1]:
            inside = inside[step]
        inside[where[-1]] = value
        court = Court().see(0, pod(node="node-a")).see(1, changed).see(2, changed)
        assert court.rules == [BOUND]
        assert where[-1] in str(court.judge.violations[0])

    def test_removed_annotation_is_a_violation(self):
        changed = pod(node="node-a")
        del changed["metadata"]["annotations"]["cachewarm.io/warmup"]
        assert Court().see(0, pod(node="node-a")).see(1, changed).rules == [BOUND]

    def test_kubelet_writes_are_ignored(self):
        changed = pod(node="node-a")
        changed["status"] = {"phase": "Running", "podIP": "10.0.0.1"}
        changed["metadata"]["resourceVersion"] = "9"
        changed["metadata"]["managedFields"] = [{"manager": "kubelet"}]
        assert Court().see(0, pod(node="node-a")).see(1, changed).rules == []

    def test_start_annotation_is_added_once_and_never_changes(self):
        def noted(value: str) -> dict:
            thing = pod(node="node-a")
            thing["metadata"]["annotations"][START] = value
            return thing

        court = Court().see(0, pod(node="node-a")).see(1, noted("hit")).see(2, noted("hit"))
        assert court.rules == []
        assert court.see(3, noted("miss")).rules == [BOUND]

    def test_relisted_pod_is_unchanged(self):
        court = Court().see(0, pod(node="node-a"), type="ADDED")
        assert court.see(50, pod(node="node-a"), type="ADDED").rules == []
        assert court.judge.tally.pods == 1

    @pytest.mark.parametrize("request_,is_violation", [
        ({"metadata": {"uid": "p", "annotations": {START: "hit"}}}, False),
        ({"metadata": {"annotations": {"cachewarm.io/held-until": "x"}}}, True),
        ({"metadata": {"labels": {"a": "b"}}}, True),
        ([{"op": "test", "path": "/metadata/uid", "value": "p"},
          {"op": "add", "path": "/metadata/annotations/cachewarm.io~1start"}], False),
        ([{"op": "remove", "path": "/spec/schedulingGates/0"}], True),
    ])
    def test_first_write_after_the_binding_is_judged_by_its_patch(
        self, request_: object, is_violation: bool
    ):
        for by, expected in ((OPERATOR, [BOUND] if is_violation else []), ("ann", [])):
            court = Court().see(0, pod()).see(1, pod(node="node-a"), by=by, request=request_)
            assert court.rules == expected


def failed(code: int, reason="Error", begin=10, end=12, last=False, injected=True) -> dict:
    thing = pod(node="node-a")
    ended = {"terminated": {"exitCode": code, "reason": reason, "startedAt": stamp(begin),
                            "finishedAt": stamp(end)}}
    states = {"state": {"running": {"startedAt": stamp(end + 1)}}, "lastState": ended}
    thing["status"]["containerStatuses"] = [
        {"name": "server", **(states if last else {"state": ended})}]
    if injected:
        thing["spec"]["volumes"] = [{"name": "cachewarm", "hostPath": {"path": "/x"}}]
    return thing


class TestFailedPods:
    @pytest.mark.parametrize("last", [False, True])
    def test_error_of_an_injected_pod_is_a_violation(self, last: bool):
        court = Court().see(13, failed(1, last=last), by=KUBELET)
        assert court.rules == [FAILED]
        assert "n/p: failed with the cache: container server ended with 1 after 2 s" in str(
            court.judge.violations[0])
        assert court.see(14, failed(1, last=last), by=KUBELET).rules == [FAILED], "reported once"

    @pytest.mark.parametrize("code, expected", [(1, [FAILED]), (0, [])])
    def test_init_container_is_judged_as_any_other(self, code: int, expected: list[str]):
        thing = failed(code)
        status = thing["status"]
        status["initContainerStatuses"] = status.pop("containerStatuses")
        status["containerStatuses"] = [{"name": "later", "state": {"waiting": {}}}]
        assert Court().see(13, thing, by=KUBELET).rules == expected

    @pytest.mark.parametrize("thing", [
        failed(0, "Completed"), failed(137), failed(143), failed(128, "StartError"),
        failed(1, injected=False),
    ])
    def test_other_ends_are_no_violation(self, thing: dict):
        assert Court().see(13, thing, by=KUBELET).rules == []

    def test_only_a_kubelet_is_believed(self):
        assert Court().see(13, failed(1), by=OPERATOR).rules == []

    def test_pod_that_the_chaos_killed_is_not_judged(self):
        court = Court()
        court.excuses.killed.add("p")
        assert court.see(13, failed(1), by=KUBELET).rules == []

    def test_pod_on_a_filled_disk_is_not_judged(self):
        for node, expected in (("node-a", []), ("node-b", [FAILED])):
            court = Court()
            court.excuse(0, 11, f"node {node}")
            assert court.see(13, failed(1), by=KUBELET).rules == expected
        court = Court()
        court.excuse(-99, 10 - DISK_SECONDS - 1, "node node-a")
        assert court.see(13, failed(1), by=KUBELET).rules == [FAILED], "long before"

    def test_starts_are_counted_once(self):
        court = Court().see(13, failed(137), by=KUBELET).see(14, failed(137, last=True), by=KUBELET)
        assert court.judge.tally.started == 2


def operator(uid: str, ready: bool) -> dict:
    thing = pod(uid, node="node-a")
    thing["metadata"]["namespace"] = "cachewarm-system"
    thing["metadata"]["labels"] = {"app.kubernetes.io/component": "operator"}
    thing["status"]["conditions"] = [{"type": "Ready", "status": str(ready)}]
    return thing


class TestOperators:
    def test_operators_that_the_chaos_did_not_kill_excuse_nothing(self):
        court = Court(20).see(0, operator("o", True), pod(held=True)).see(15, operator("o", False))
        assert court.look(26).rules == [HELD]
        assert court.judge.tally.away == 1

    def test_pod_that_is_due_late_waits_for_the_cron_job(self):
        court = Court(200).kill_operators(0).see(0, operator("o", True), pod(held=True))
        court.see(1, operator("o", False))
        assert court.look(200 + AWAY_MAX + GRACE).rules == []
        assert court.look(200.1 + AWAY_MAX + GRACE).rules == [HELD]

    def test_hold_without_an_operator_is_excused(self):
        court = Court(20).kill_operators(14).see(0, operator("o", True), pod(held=True))
        court.see(15, operator("o", True), type="DELETED").look(50)
        court.see(50, operator("new", False)).see(51, operator("new", True))
        assert court.look(51 + BACK_SECONDS + GRACE).rules == []
        assert court.look(51.1 + BACK_SECONDS + GRACE).rules == [HELD]
        assert court.judge.tally.away == 1

    def test_second_operator_leaves_no_excuse(self):
        court = Court(20).see(0, operator("one", True), operator("two", True), pod(held=True))
        assert court.see(15, operator("one", False)).look(26).rules == [HELD]
        assert court.judge.tally.away == 0

    def test_cron_job_must_release_when_no_operator_comes_back(self):
        court = Court(20).kill_operators(19).see(0, operator("o", True), pod(held=True))
        court.see(20, operator("o", False))
        assert court.look(20 + AWAY_MAX + GRACE).rules == []
        assert court.look(20.1 + AWAY_MAX + GRACE).rules == [HELD]

    def test_pods_of_other_namespaces_are_no_operators(self):
        other = operator("o", True)
        other["metadata"]["namespace"] = "n"
        court = Court(20).see(0, other, pod(held=True)).see(15, other, type="DELETED")
        assert court.look(26).rules == [HELD]
