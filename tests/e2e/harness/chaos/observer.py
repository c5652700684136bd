# SPDX-License-Identifier: Apache-2.0
"""Sees for itself: watches the API server with the administrator's certificate, in threads of its
own, and hands every event to the judge. It asks none of our programs anything."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator

from ..api import Api
from .excuses import Excuses
from .judge import Judge, Seen, Violation, name

PATHS = {
    "Pod": "/api/v1/pods",
    "Node": "/api/v1/nodes",
    "Job": "/apis/batch/v1/jobs",
    "NodeCache": "/apis/cachewarm.io/v1alpha1/nodecaches",
}
UNJUDGED = "could not be judged"
_WATCH_SECONDS = 60
_LOOK_SECONDS = 0.25


class Watch:
    """All objects of one kind, from a list on and then without a gap; `report` gets each event and
    raises nothing; `fail` gets what ended the watch, unless stop() did."""

    def __init__(
        self,
        api: Api,
        kind: str,
        report: Callable[[Seen], None],
        fail: Callable[[str, Exception], None],
        excuses: Excuses,
    ):
        self._api = api
        self._kind = kind
        self._report = report
        self._fail = fail
        self._excuses = excuses
        self._known: dict[str, dict] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"watch {kind}")
        self.listed = threading.Event()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Its thread ends with the next event, or with the process."""
        self._stop.set()

    def _run(self) -> None:
        try:
            self._watch()
        except Exception as error:
            self._fail(self._thread.name, error)

    def _watch(self) -> None:
        """While it is blind to pods, it cannot say when one was released: that is excused."""
        blind = None
        while not self._stop.is_set():
            try:
                version = self._list()
                if blind is not None:
                    self._excuses.end(blind, time.time())
                    blind = None
                self.listed.set()
                while not self._stop.is_set():
                    version = self._follow(version)
            except (OSError, http.client.HTTPException, ValueError):
                if blind is None and self._kind == "Pod":
                    blind = self._excuses.begin(time.time())
                self._stop.wait(0.2)

    def _list(self) -> str:
        answer = json.loads(self._api.ask(PATHS[self._kind]).read())
        now = {each["metadata"]["uid"]: each for each in answer["items"]}
        for uid in self._known.keys() - now.keys():
            self._see("DELETED", self._known[uid])
        for each in now.values():
            self._see("ADDED", each)
        return answer["metadata"]["resourceVersion"]

    def _follow(self, version: str) -> str:
        """Until the server ends the watch; then from where it was. ValueError: list again."""
        path = f"{PATHS[self._kind]}?watch=1&resourceVersion={version}&allowWatchBookmarks=true"
        for event in self._events(f"{path}&timeoutSeconds={_WATCH_SECONDS}"):
            if event["type"] == "ERROR":
                raise ValueError(event["object"].get("message", "error in the watch"))
            version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self._see(event["type"], event["object"])
        return version

    def _events(self, path: str) -> Iterator[dict]:
        for line in self._api.ask(path):
            if self._stop.is_set():
                return
            yield json.loads(line)

    def _see(self, kind: str, thing: dict) -> None:
        thing = {**thing, "kind": self._kind}
        uid = thing["metadata"]["uid"]
        if kind == "DELETED":
            self._known.pop(uid, None)
        else:
            self._known[uid] = thing
        self._report(Seen(at=time.time(), type=kind, object=thing))


class Observer:
    """A context: from entering to leaving everything is watched and judged."""

    def __init__(self, api: Api, longest_hold: float, excuses: Excuses):
        self._lock = threading.Lock()
        self._judge = Judge(longest_hold, excuses)
        self._unjudged: dict[str, Violation] = {}
        self._watches = [Watch(api, kind, self._see, self._fail, excuses) for kind in PATHS]
        self._stop = threading.Event()
        self._looker = threading.Thread(target=self._look, daemon=True, name="observer")

    def __enter__(self) -> "Observer":
        for watch in self._watches:
            watch.start()
        for watch in self._watches:
            assert watch.listed.wait(60), "the API server does not answer the observer"
        self._looker.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        for watch in self._watches:
            watch.stop()
        self._looker.join(timeout=30)

    @property
    def violations(self) -> list[str]:
        with self._lock:
            return [str(each) for each in [*self._judge.violations, *self._unjudged.values()]]

    @property
    def now_held(self) -> list[str]:
        with self._lock:
            return self._judge.now_held

    @property
    def summary(self) -> dict[str, float]:
        with self._lock:
            tally = self._judge.tally
            return {name: round(value, 1) for name, value in vars(tally).items()}

    def _see(self, seen: Seen) -> None:
        self._ask(f"{seen.kind} {name(seen.object)}", lambda: self._judge.see(seen))

    def _look(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self._ask("a look", lambda: self._judge.look(time.time()))

    def _ask(self, subject: str, question: Callable[[], None]) -> None:
        try:
            with self._lock:
                question()
        except Exception as error:
            self._fail(subject, error)

    def _fail(self, subject: str, error: Exception) -> None:
        """An event that was not judged may be a violation. Reported once per subject."""
        with self._lock:
            violation = Violation(time.time(), UNJUDGED, subject, repr(error))
            self._unjudged.setdefault(subject, violation)
