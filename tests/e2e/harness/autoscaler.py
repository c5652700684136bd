# SPDX-License-Identifier: Apache-2.0
"""An autoscaler as real ones are: it sees a pod that is Unschedulable, never one that is held, and
adds what that pod lacks."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from . import pods
from .kubectl import Kubectl
from .waiting import wait_for


class Autoscaler:
    """Runs while it is entered, and adds once."""

    def __init__(self, kubectl: Kubectl, app: str, add: Callable[[], object]):
        self._kubectl = kubectl
        self._app = app
        self._add = add
        self._over = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self._added: Future[str]

    def __enter__(self) -> "Autoscaler":
        self._added = self._thread.submit(self._run)
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        self._thread.shutdown()

    def wait_added(self, seconds: float) -> str:
        """The name of the pod that it saw."""
        wait_for("the autoscaler adds", self._added.done, seconds, self._kubectl)
        return self._added.result()

    def _run(self) -> str:
        while not self._over.wait(0.5):
            for pod in pods.of(self._kubectl, self._app):
                if _is_unschedulable(pod):
                    self._add()
                    return pods.name(pod)
        raise AssertionError(f"no pod of {self._app} was ever Unschedulable")


def _is_unschedulable(pod: dict) -> bool:
    return any(
        each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
        for each in pod["status"].get("conditions", [])
    )
