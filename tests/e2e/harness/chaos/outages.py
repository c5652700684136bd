# SPDX-License-Identifier: Apache-2.0
"""Nodes lose their power, one at a time, and get it back."""

import random
import time
from collections.abc import Callable

from .. import pods
from ..cluster import NODES
from ..waiting import wait_for
from .judge import seconds as moment
from .scene import Scene


def cut_power(scene: Scene, chance: random.Random, wait: Callable[[float], object]) -> str:
    """For some seconds: sometimes so short that Kubernetes does not notice (it takes 20), sometimes
    long enough that the node is lost. Not the node of the last operator that lives."""
    node = chance.choice(NODES)
    with scene.operators:
        if not scene.another_operator_lives(off=node):
            return ""
        scene.off.add(node)
    seconds = chance.choice((0, 0, 10, 35))
    scene.cluster.verb("node-down", node)
    wait(seconds)
    _power_on(scene, node)
    return f"{node} for {seconds} s"


def put_right(scene: Scene) -> None:
    for node in NODES:
        _power_on(scene, node)


def _power_on(scene: Scene, node: str) -> None:
    """Until our programs run there again, by the word of the kubelet of this boot: the pods of the
    one before look Ready for a while."""
    since = time.time() - 1 if node in scene.off else 0.0
    with scene.power:
        scene.cluster.verb("node-up", node)

    def runs_again() -> bool:
        found = [
            pod
            for program in ("operator", "agent")
            for pod in scene.product.pods(program)
            if pods.node(pod) == node
        ]
        return bool(found) and all(pods.ready(p) and _started(p) >= since for p in found)

    wait_for(f"our programs run on {node} again", runs_again, 120)
    scene.off.discard(node)


def _started(pod: dict) -> float:
    running = pod["status"]["containerStatuses"][0]["state"].get("running", {})
    return moment(running["startedAt"]) if running else 0.0
