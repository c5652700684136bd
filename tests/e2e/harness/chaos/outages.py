# SPDX-License-Identifier: Apache-2.0
"""Nodes lose their power, one at a time, and get it back, as the same Node or another."""

import random
import time
from collections.abc import Callable

from .. import pods
from ..cluster import NODES
from ..waiting import wait_for
from .judge import seconds as moment
from .scene import Scene


Wait = Callable[[float], object]


def cut_power(scene: Scene, chance: random.Random, wait: Wait) -> str:
    """For some seconds: sometimes so short that Kubernetes does not notice (it takes 20), sometimes
    long enough that the node is lost."""
    seconds = chance.choice((0, 0, 10, 35))
    node = _power_off(scene, chance)
    if node:
        wait(seconds)
        _power_on(scene, node)
    return f"{node} for {seconds} s" if node else ""


def replace_node(scene: Scene, chance: random.Random, wait: Wait) -> str:
    """As a cloud does with a machine that it takes back: another Node of the same name. Its disk
    stays, as it does where only the Node object was deleted."""
    seconds = chance.choice((0, 10))
    node = _power_off(scene, chance)
    if node:
        scene.cluster.kubectl().delete("node", node)
        wait(seconds)
        _power_on(scene, node)
    return f"{node} after {seconds} s" if node else ""


def _power_off(scene: Scene, chance: random.Random) -> str:
    """Some node, but not that of the last operator that lives; "": none."""
    node = chance.choice(NODES)
    with scene.operators:
        if not scene.another_operator_lives(off=node):
            return ""
        scene.off.add(node)
    scene.cluster.verb("node-down", node)
    return node


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
