# SPDX-License-Identifier: Apache-2.0
"""Records after every change the pods of a namespace that hold a device or wait for one."""

import json
import subprocess
import threading
from dataclasses import dataclass

from . import pods
from .kubectl import Kubectl

_OF_BUILDERS = "cachewarm.io/builder-warmup"
_WATCH = ("get", "pods", "--watch", "--output-watch-events", "--output=json")


@dataclass(frozen=True)
class Page:
    """Names of pods after one change. Those that hold a device are bound and have not ended."""

    users: frozenset[str]  # hold one
    waiting: frozenset[str]  # of the users', not bound
    builders: frozenset[str]  # hold one


class DeviceBook:
    """A context: every pod of the namespace asks for one device; `pages` holds all changes from
    entering to leaving, in their order."""

    def __init__(self, kubectl: Kubectl):
        self._kubectl = kubectl
        self._live: dict[str, dict] = {}
        self._first = threading.Event()
        self.pages: list[Page] = []

    def __enter__(self) -> "DeviceBook":
        self._process = self._kubectl.start(*_WATCH, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._first.wait(30), "no pod is there to begin with"
        return self

    def __exit__(self, *_) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        self._reader.join(timeout=30)

    def _read(self) -> None:
        for line in self._process.stdout:
            change = json.loads(line)
            pod = change["object"]
            ended = pod["status"].get("phase") in ("Succeeded", "Failed")
            if change["type"] == "DELETED" or ended:
                self._live.pop(pods.name(pod), None)
            else:
                self._live[pods.name(pod)] = pod
            self.pages.append(self._page())
            self._first.set()

    def _page(self) -> Page:
        builders = {n for n, p in self._live.items() if _OF_BUILDERS in p["metadata"]["labels"]}
        bound = {name for name, pod in self._live.items() if pods.node(pod)}
        users = self._live.keys() - builders
        return Page(
            users=frozenset(users & bound),
            waiting=frozenset(users - bound),
            builders=frozenset(builders & bound),
        )

    def in_the_way(self, capacity: int, expected: int) -> list[Page]:
        """Pages on which a builder had just taken a device that one of the users' pods needs: one
        that is there, or one of the `expected` that is not there yet."""
        out = []
        before: frozenset[str] = frozenset()
        for page in self.pages:
            needed = max(expected, len(page.users | page.waiting))
            if page.builders - before and needed + len(page.builders) > capacity:
                out.append(page)
            before = page.builders
        return out
