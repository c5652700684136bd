# SPDX-License-Identifier: Apache-2.0
"""Kills programs of the installation at random moments while a test works."""

import random
import threading
import time

from . import pods
from .kubectl import KubectlError
from .product import Product


_LEASES_THAT_RUN_OUT = 4


class Storm:
    """SIGKILL to the leading operator `kills` times, and as often to some agent. A context: the
    storm begins when it is entered; wait() ends when the last kill was done.

    The killed pod is deleted as well, so that its successor comes at once: kubelet makes a
    container that dies often wait for minutes, and nothing would be left to kill. For the same
    reason most Leases are ended with their holder: only one in _LEASES_THAT_RUN_OUT leaves the
    cluster without a leader for as long as a Lease lasts.
    """

    def __init__(self, product: Product, kills: int, seed: int):
        self._product = product
        self._kills = kills
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.operators_killed = 0
        self.agents_killed = 0

    def __enter__(self) -> "Storm":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join(timeout=120)

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set() and (
            self.operators_killed < self._kills or self.agents_killed < self._kills
        ):
            self._stop.wait(self._random.uniform(0.0, 4.0))
            try:
                self._kill_leader()
                self._kill_some_agent()
            # The API server may be away, a pod may be gone: the next round tries again.
            except (KubectlError, AssertionError):
                self._stop.wait(1)

    def _kill_leader(self) -> None:
        if self.operators_killed >= self._kills:
            return
        name = self._product.leader()
        found = [pod for pod in self._product.pods("operator") if pods.name(pod) == name]
        if found and pods.ready(found[0]):
            holder = self._product.lease_holder()
            self._end(found[0])
            self.operators_killed += 1
            if self.operators_killed % _LEASES_THAT_RUN_OUT and name in holder:
                self._product.end_lease(holder)

    def _kill_some_agent(self) -> None:
        if self.agents_killed >= self._kills:
            return
        found = [pod for pod in self._product.pods("agent") if pods.ready(pod)]
        if found:
            self._end(self._random.choice(found))
            self.agents_killed += 1

    def _end(self, pod: dict) -> None:
        self._product.kill(pod)
        self._product.kubectl.kill_pod(pods.name(pod))


def seed_of_the_day() -> int:
    """Another storm every time; the test prints it, and KILL_SEED repeats it."""
    return int(time.time()) % 100000
