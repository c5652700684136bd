# SPDX-License-Identifier: Apache-2.0
"""The observer misses no event when its watch breaks, and reports an event that it could not judge.
No cluster: the API server is a script."""

import io
import json
import threading

import pytest
from harness.chaos.excuses import Excuses
from harness.chaos.judge import GATE
from harness.chaos.observer import PATHS, UNJUDGED, Observer, Watch
from harness.waiting import wait_for


def pod(uid: str, version: str) -> dict:
    return {"metadata": {"uid": uid, "name": uid, "resourceVersion": version}, "spec": {}}


def listed(version: str, *pods: dict) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": version}, "items": list(pods)}).encode()


def watched(*events: tuple[str, dict]) -> bytes:
    lines = [json.dumps({"type": kind, "object": thing}) for kind, thing in events]
    return "".join(line + "\n" for line in lines).encode()


class Script:
    """Answers in their order; an exception is raised. After the last one it is silent."""

    def __init__(self, *answers: bytes | Exception):
        self._answers = list(answers)
        self.asked: list[str] = []
        self.over = threading.Event()

    def ask(self, path: str) -> io.BytesIO:
        self.asked.append(path)
        if not self._answers:
            self.over.set()
            threading.Event().wait()
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)


def follow(*answers: bytes | Exception) -> tuple[list[tuple[str, str]], Script, Excuses]:
    script, excuses = Script(*answers), Excuses()
    seen: list[tuple[str, str]] = []
    failed: list[tuple[str, Exception]] = []
    watch = Watch(
        script,
        "Pod",
        lambda each: seen.append((each.type, each.uid)),
        lambda *what: failed.append(what),
        excuses,
    )
    watch.start()
    assert script.over.wait(30)
    watch.stop()
    assert not failed
    return seen, script, excuses


def test_watch_resumes_at_its_last_version():
    mark = ("BOOKMARK", {"metadata": {"resourceVersion": "9"}})
    seen, script, _ = follow(
        listed("5", pod("a", "3")),
        watched(("MODIFIED", pod("a", "6")), ("ADDED", pod("b", "7"))),
        watched(mark),
    )
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b")]
    starts = [path.partition("resourceVersion=")[2].partition("&")[0] for path in script.asked]
    assert starts == ["", "5", "7", "9"]


def test_deletion_during_an_outage_is_reported():
    seen, _, excuses = follow(
        listed("5", pod("a", "3"), pod("b", "4")),
        ConnectionResetError(),
        ConnectionRefusedError(),
        listed("9", pod("b", "8")),
    )
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a"), ("ADDED", "b")]
    assert excuses.within(0, 1e12) > 0


def test_expired_version_triggers_a_new_list():
    forgotten = ("ERROR", {"code": 410, "message": "too old resource version"})
    seen, script, _ = follow(listed("5"), watched(forgotten), listed("9", pod("a", "8")))
    assert seen == [("ADDED", "a")]
    assert "resourceVersion=9" in script.asked[-1]


def test_truncated_line_is_no_event():
    half = watched(("ADDED", pod("a", "6")))[:20]
    seen, _, _ = follow(listed("5"), half, listed("9"))
    assert seen == []


class Scripts:
    """One for pods; of the other kinds there is nothing."""

    def __init__(self, *answers: bytes | Exception):
        self.pods = Script(*answers)
        self._others = {kind: Script(listed("1")) for kind in PATHS}

    def ask(self, path: str) -> io.BytesIO:
        kind = next(kind for kind, start in PATHS.items() if path.startswith(start))
        return (self.pods if kind == "Pod" else self._others[kind]).ask(path)


def held(uid: str, version: str, **metadata: str) -> dict:
    thing = pod(uid, version)
    thing["metadata"].update(metadata)
    thing["spec"]["schedulingGates"] = [{"name": GATE}]
    return thing


@pytest.mark.parametrize("metadata", [{}, {"creationTimestamp": "yesterday"}])
def test_error_of_the_judge_is_a_violation(metadata: dict):
    scripts = Scripts(listed("5"), watched(("ADDED", held("a", "6", **metadata))))
    with Observer(scripts, 60, Excuses()) as observer:
        assert scripts.pods.over.wait(30)
    (violation,) = observer.violations
    assert f"Pod /a: {UNJUDGED}: " in violation
    assert "resourceVersion=6" in scripts.pods.asked[2], "no new list: the watch was well"


def test_failed_watch_is_a_violation():
    scripts = Scripts(listed("5"), watched(("ADDED", {})))
    with Observer(scripts, 60, Excuses()) as observer:
        wait_for("the failure is reported", lambda: observer.violations, 30)
    (violation,) = observer.violations
    assert f"watch Pod: {UNJUDGED}: KeyError('metadata')" in violation
