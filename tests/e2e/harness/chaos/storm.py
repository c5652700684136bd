# SPDX-License-Identifier: Apache-2.0
"""All of it at once, for a given time: actions one after the other, and beside them outages and
denials, each in a thread and with a chance of its own."""

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from ..kubectl import KubectlError
from . import outages
from .actions import ACTIONS
from .denials import Denials
from .scene import Scene

Turn = Callable[[random.Random], tuple[str, str]]  # what was done, and to whom; "" to nobody


class Chaos:
    """run() lasts `seconds`. What was done is in `done`, by kind; what could not be done, because
    the API server or the node was away or there was nobody to do it to, in `missed`."""

    def __init__(self, scene: Scene, seconds: float, seed: int):
        self._scene = scene
        self._denials = Denials(scene)
        self._seconds = seconds
        self._seed = seed
        self._over = threading.Event()
        self._counting = threading.Lock()
        self.done: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self._broken: list[str] = []

    def run(self) -> None:
        """At the end nothing is refused any more and every node has power, also when something
        broke. The objects stay as the chaos left them."""
        turns = (
            (self._action, (0.2, 5.0)),
            (self._outage, (10.0, 40.0)),
            (self._denial, (5.0, 25.0)),
        )
        threads = [
            threading.Thread(target=self._keep_on, args=(number, *turn), daemon=True)
            for number, turn in enumerate(turns)
        ]
        for thread in threads:
            thread.start()
        self._over.wait(self._seconds)
        self._over.set()
        for thread in threads:
            thread.join(timeout=300)
        self._denials.put_right()
        outages.put_right(self._scene)
        assert not self._broken, self._broken
        assert not any(thread.is_alive() for thread in threads)

    def _keep_on(self, number: int, turn: Turn, pause: tuple[float, float]) -> None:
        chance = random.Random(self._seed * 10 + number)
        while not self._over.wait(chance.uniform(*pause)):
            try:
                kind, whom = turn(chance)
            except (KubectlError, AssertionError) as error:
                self._report("could not", str(error).strip().partition("\n")[0][:150])
                self._count(self.missed, "could not")
                continue
            except Exception as error:  # a mistake of the chaos itself: the test has to fail
                self._broken.append(f"{type(error).__name__}: {error}")
                self._over.set()
                raise
            self._count(self.done if whom else self.missed, kind)
            if whom:
                self._report(kind, whom)

    def _action(self, chance: random.Random) -> tuple[str, str]:
        weighed = chance.choices(ACTIONS, [each.weight for each in ACTIONS])[0]
        return weighed.action.__name__, weighed.action(self._scene, chance)

    def _outage(self, chance: random.Random) -> tuple[str, str]:
        ways, weights = zip(*outages.OUTAGES, strict=True)
        way = chance.choices(ways, weights)[0]
        return way.__name__, way(self._scene, chance, self._over.wait)

    def _denial(self, chance: random.Random) -> tuple[str, str]:
        ways = (
            self._denials.take_a_rule,
            self._denials.refuse_writes,
            self._denials.restart_api_server,
            self._denials.hang_webhook,
        )
        way = chance.choices(ways, (5, 4, 1, 3))[0]
        return way.__name__, way(chance, self._over.wait)

    def _count(self, counter: Counter[str], kind: str) -> None:
        with self._counting:
            counter[kind] += 1

    def _report(self, kind: str, whom: str) -> None:
        moment = datetime.fromtimestamp(time.time()).strftime("%H:%M:%S")
        print(f"{moment} {kind}: {whom}", file=sys.stderr, flush=True)
