# SPDX-License-Identifier: Apache-2.0
"""Sees for itself: follows the audit log of the API server in a thread of its own, and hands every
change to the judge. It asks none of our programs anything."""

import http.client
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..api import Api
from .audit import Changes
from .excuses import Excuses
from .judge import Judge, Seen, Violation, name

PATHS = {
    "Pod": "/api/v1/pods",
    "Node": "/api/v1/nodes",
    "Job": "/apis/batch/v1/jobs",
    "NodeCache": "/apis/cachewarm.io/v1alpha1/nodecaches",
}
UNJUDGED = "could not be judged"
_LOOK_SECONDS = 0.25
# A request may be logged this long after its write, on a busy machine.
_LOG_SECONDS = 1.0


class Log:
    """The lines of an audit log, from its first one: of its older parts, then of the file, which
    the API server renames and begins again when it is large."""

    def __init__(self, path: Path):
        self._path = path
        older = path.parent.glob(f"{path.stem}-*{path.suffix}")
        self._waiting = [*sorted(older), path]
        self._file = None
        self._rest = ""

    def lines(self) -> Iterator[str]:
        """The complete lines that were added since the last call."""
        while True:
            if self._file is None:
                if not self._waiting or not self._waiting[0].exists():
                    return
                self._file = self._waiting.pop(0).open(encoding="utf-8", errors="replace")
            is_replaced = self._is_replaced()
            yield from self._complete(self._file.read())
            if not self._waiting and not is_replaced:
                return
            self._file.close()
            self._file = None
            self._waiting = self._waiting or [self._path]

    def close(self) -> None:
        if self._file:
            self._file.close()

    def _complete(self, text: str) -> Iterator[str]:
        *complete, self._rest = (self._rest + text).split("\n")
        yield from complete

    def _is_replaced(self) -> bool:
        """Asked before the file is read: nothing is added to it after it was replaced."""
        try:
            return self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return False


class Observer:
    """A context: from entering to leaving every change is read and judged. The log is read from its
    beginning, and the changes before the entering are no violations."""

    def __init__(self, log: Path, api: Api, longest_hold: float, excuses: Excuses):
        self._lock = threading.RLock()
        self._judge = Judge(longest_hold, excuses)
        self._excuses = excuses
        self._log = Log(log)
        self._api = api
        self._changes = Changes()
        self._unjudged: dict[str, Violation] = {}
        self._began = 0.0
        self._has_begun = False  # a look was not before the entering
        self._listed = 0  # excuses that were over when the objects were listed
        self._stop = threading.Event()
        self._caught_up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="observer")

    def __enter__(self) -> "Observer":
        self._began = time.time()
        self._thread.start()
        assert self._caught_up.wait(60), "the audit log cannot be read"
        with self._lock:
            pods = self._judge.tally.pods
        assert pods, "no pod in the audit log: start the cluster with CACHEWARM_AUDIT=objects"
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join(timeout=30)
        self._log.close()

    @property
    def violations(self) -> list[str]:
        with self._lock:
            judged = [each for each in self._judge.violations if each.at >= self._began]
            return [str(each) for each in [*judged, *self._unjudged.values()]]

    @property
    def now_held(self) -> list[str]:
        with self._lock:
            return self._judge.now_held

    @property
    def summary(self) -> dict[str, float]:
        with self._lock:
            tally = {name: round(value, 1) for name, value in vars(self._judge.tally).items()}
            return {**tally, "unreadable": self._changes.unreadable}

    def _run(self) -> None:
        while True:
            is_last = self._stop.is_set()
            now = time.time()
            self._ask("the audit log", self._read)
            self._ask("lists", self._list)
            self._ask("a look", lambda now=now: self._look(now - _LOG_SECONDS))
            self._caught_up.set()
            if is_last:
                return
            self._stop.wait(_LOOK_SECONDS)

    def _read(self) -> None:
        for line in self._log.lines():
            self._ask("a line of the audit log", lambda line=line: self._see(line))

    def _see(self, line: str) -> None:
        for seen in self._changes.read(line):
            self._judge_one(seen)

    def _look(self, now: float) -> None:
        with self._lock:
            if not self._has_begun and now >= self._began:
                self._has_begun = True
                self._judge.report_again()
            self._judge.look(now)

    def _judge_one(self, seen: Seen) -> None:
        def see() -> None:
            with self._lock:
                self._judge.see(seen)

        self._ask(f"{seen.kind} {name(seen.object)}", see)

    def _list(self) -> None:
        """After each time in which requests failed for everybody: what the API server wrote last
        may be missing in the log."""
        over = self._excuses.ended
        if over == self._listed:
            return
        try:
            for kind, path in PATHS.items():
                now = time.time()
                answer = json.loads(self._api.ask(path).read())
                version = answer["metadata"]["resourceVersion"]
                for seen in self._changes.listed(kind, answer["items"], version, now):
                    self._judge_one(seen)
        except (OSError, http.client.HTTPException):
            return  # asked again at the next look
        self._listed = over

    def _ask(self, subject: str, question: Callable[[], None]) -> None:
        try:
            question()
        except Exception as error:
            self._fail(subject, error)

    def _fail(self, subject: str, error: Exception) -> None:
        """A change that was not judged may be a violation. Reported once per subject."""
        with self._lock:
            violation = Violation(time.time(), UNJUDGED, subject, repr(error))
            self._unjudged.setdefault(subject, violation)
