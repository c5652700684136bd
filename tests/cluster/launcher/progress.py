# SPDX-License-Identifier: Apache-2.0
"""Progress lines with elapsed time, and waiting for a condition with a deadline."""

import sys
import threading
import time
from collections.abc import Callable

from .settings import ClusterError

_lock = threading.Lock()


class Progress:
    """One line per finished step: seconds since the command began, seconds of the step, what it
    was."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, out=sys.stderr):
        self._clock = clock
        self._out = out
        self._began = clock()

    def done(self, what: str, since: float | None = None) -> None:
        now = self._clock()
        took = f" ({now - since:.1f} s)" if since is not None else ""
        with _lock:
            print(f"cluster {now - self._began:6.1f} s  {what}{took}", file=self._out, flush=True)

    def now(self) -> float:
        return self._clock()


def wait_until(
    condition: Callable[[], object],
    seconds: float,
    failure: Callable[[], str] | str,
    every: float = 0.05,
):
    """Returns the condition's first true value; after `seconds` raises with `failure`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            text = failure() if callable(failure) else failure
            raise ClusterError(f"{text} (waited {seconds:.0f} s)")
        time.sleep(every)
