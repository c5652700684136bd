# SPDX-License-Identifier: Apache-2.0
"""The observer misses no line of the audit log, and reports a change that it could not judge. No
cluster: the log is a file of the test, and the API server a script."""

import io
import json
import time
from pathlib import Path

import pytest
from harness.chaos.excuses import Excuses
from harness.chaos.judge import GATE
from harness.chaos.observer import PATHS, UNJUDGED, Log, Observer
from harness.waiting import wait_for


def pod(uid: str, version: str, created: float | None = None, **metadata: str) -> dict:
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created or time.time()))
    details = {"uid": uid, "name": uid, "namespace": "n", "resourceVersion": version}
    return {"kind": "Pod", "metadata": {**details, "creationTimestamp": moment, **metadata},
            "spec": {}, "status": {}}


def held(uid: str, version: str, created: float | None = None, **metadata: str) -> dict:
    thing = pod(uid, version, created, **metadata)
    thing["spec"]["schedulingGates"] = [{"name": GATE}]
    return thing


def line(verb: str, thing: dict) -> str:
    about = {"resource": "pods", "namespace": "n", "name": thing["metadata"]["name"]}
    moment = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    return json.dumps({
        "kind": "Event", "level": "RequestResponse", "stage": "ResponseComplete", "verb": verb,
        "user": {"username": "ann"}, "objectRef": about, "responseStatus": {"code": 200},
        "responseObject": thing, "stageTimestamp": moment, "requestURI": "/",
    }) + "\n"


class Server:
    """Answers every list of pods with `pods`, and fails `failures` times before."""

    def __init__(self, *pods: dict, version="99", failures=0):
        self._pods = pods
        self._version = version
        self._failures = failures
        self.asked: list[str] = []

    def ask(self, path: str) -> io.BytesIO:
        self.asked.append(path)
        if self._failures:
            self._failures -= 1
            raise ConnectionRefusedError
        items = list(self._pods) if path == PATHS["Pod"] else []
        answer = {"metadata": {"resourceVersion": self._version}, "items": items}
        return io.BytesIO(json.dumps(answer).encode())


@pytest.fixture
def log(tmp_path) -> Path:
    path = tmp_path / "audit.log"
    path.write_text(line("create", pod("first", "1")))
    return path


def add(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_log_is_read_from_its_first_part_to_its_newest_line(log):
    log.write_text("c\n")
    log.with_name("audit-2026-11-26T12-00-00.000.log").write_text("b\n")
    log.with_name("audit-2026-11-26T11-00-00.000.log").write_text("a\n")
    reader = Log(log)
    assert list(reader.lines()) == ["a", "b", "c"]
    add(log, "d\ne")
    assert list(reader.lines()) == ["d"], "the last line is not complete"
    add(log, "nd\n")
    assert list(reader.lines()) == ["end"]
    reader.close()


def test_log_that_was_replaced_is_read_to_its_end_first(log):
    log.write_text("a\n")
    reader = Log(log)
    assert list(reader.lines()) == ["a"]
    add(log, "b\n")
    log.rename(log.with_name("audit-old.log"))
    assert list(reader.lines()) == ["b"], "the new file is not there yet"
    log.write_text("c\n")
    assert list(reader.lines()) == ["c"]
    add(log, "d\n")
    assert list(reader.lines()) == ["d"]
    reader.close()


def test_overdue_pod_is_a_violation(log):
    add(log, line("create", held("late", "2", time.time() - 11)))
    with Observer(log, Server(), 10, Excuses()) as observer:
        assert observer.now_held == ["n/late"]
        wait_for("it is reported", lambda: observer.violations, 30)
        add(log, line("patch", pod("late", "3")))
        wait_for("it is released", lambda: not observer.now_held, 30)
    assert "n/late: held past its deadline" in observer.violations[0]


def test_violation_before_the_observation_does_not_count(log):
    add(log, line("create", held("late", "2", time.time() - 300)))
    add(log, line("patch", pod("late", "3")))
    time.sleep(1.1)  # times in the log of this test are whole seconds
    with Observer(log, Server(), 10, Excuses()) as observer:
        assert observer.now_held == []
    assert observer.violations == [] and observer.summary["latest"] > 200


def test_violation_that_lasts_since_before_the_observation_counts(log):
    add(log, line("create", held("late", "2", time.time() - 300)))
    add(log, line("patch", held("late", "3", time.time() - 300)))
    # The lines are older than the observation, also by the second that a look waits.
    time.sleep(2.1)
    with Observer(log, Server(), 10, Excuses()) as observer:
        wait_for("it is reported", lambda: observer.violations, 30)
    assert "n/late: held past its deadline" in observer.violations[0]


def test_objects_are_listed_after_an_outage_of_the_api_server(log):
    """The line of the release was lost with the API server."""
    add(log, line("create", held("lost", "2")) + line("create", held("gone", "3")))
    excuses, server = Excuses(), Server(pod("lost", "5"), failures=2)
    with Observer(log, server, 600, excuses) as observer:
        assert observer.now_held == ["n/gone", "n/lost"] and server.asked == []
        span = excuses.begin(time.time())
        time.sleep(0.6)
        assert server.asked == [], "it is still off"
        excuses.end(span, time.time())
        wait_for("both are released", lambda: not observer.now_held, 30)
    assert not observer.violations


def test_last_lines_are_judged(log):
    with Observer(log, Server(), 600, Excuses()) as observer:
        add(log, line("create", held("last", "2")))
    assert observer.now_held == ["n/last"]


def test_error_of_the_judge_is_a_violation(log):
    with Observer(log, Server(), 60, Excuses()) as observer:
        add(log, line("create", held("a", "6", creationTimestamp="yesterday")))
        wait_for("the failure is reported", lambda: observer.violations, 30)
        add(log, line("create", held("b", "7")))
        wait_for("the next change is judged", lambda: observer.now_held == ["n/b"], 30)
    assert f"Pod n/a: {UNJUDGED}: " in observer.violations[0]


def test_unreadable_answer_is_a_violation(log):
    with Observer(log, Server(), 60, Excuses()) as observer:
        add(log, line("create", {"kind": "Pod", "metadata": {"name": "x"}}))
        wait_for("the failure is reported", lambda: observer.violations, 30)
    assert f"a line of the audit log: {UNJUDGED}: KeyError" in observer.violations[0]


def test_log_without_objects_is_refused(log):
    log.write_text("")
    with pytest.raises(AssertionError, match="CACHEWARM_AUDIT=objects"):
        with Observer(log, Server(), 60, Excuses()):
            pass
