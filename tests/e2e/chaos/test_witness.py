# SPDX-License-Identifier: Apache-2.0
"""The witness misses nothing when its watch breaks. No cluster: the API server is a script."""

import io
import json
import threading

from harness.chaos.excuses import Excuses
from harness.chaos.witness import Watch


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
    watch = Watch(script, "Pod", lambda each: seen.append((each.type, each.uid)), excuses)
    watch.start()
    assert script.over.wait(30)
    watch.stop()
    return seen, script, excuses


def test_a_watch_goes_on_where_it_ended():
    mark = ("BOOKMARK", {"metadata": {"resourceVersion": "9"}})
    seen, script, _ = follow(
        listed("5", pod("a", "3")),
        watched(("MODIFIED", pod("a", "6")), ("ADDED", pod("b", "7"))),
        watched(mark),
    )
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b")]
    starts = [path.partition("resourceVersion=")[2].partition("&")[0] for path in script.asked]
    assert starts == ["", "5", "7", "9"]


def test_what_was_deleted_while_the_server_was_away_is_told():
    seen, _, excuses = follow(
        listed("5", pod("a", "3"), pod("b", "4")),
        ConnectionResetError(),
        ConnectionRefusedError(),
        listed("9", pod("b", "8")),
    )
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a"), ("ADDED", "b")]
    assert excuses.within(0, 1e12) > 0


def test_a_place_that_the_server_has_forgotten_means_another_list():
    forgotten = ("ERROR", {"code": 410, "message": "too old resource version"})
    seen, script, _ = follow(listed("5"), watched(forgotten), listed("9", pod("a", "8")))
    assert seen == [("ADDED", "a")]
    assert "resourceVersion=9" in script.asked[-1]


def test_a_line_that_was_cut_is_no_event():
    half = watched(("ADDED", pod("a", "6")))[:20]
    seen, _, _ = follow(listed("5"), half, listed("9"))
    assert seen == []
