# SPDX-License-Identifier: Apache-2.0
"""Nodes lose their power, one at a time, and get it back, as the same Node or another; their disks
are full, and their agents hang."""

import json
import math
import random
import time
import uuid
from collections.abc import Callable

from .. import pods
from ..cluster import NODES
from ..waiting import wait_for
from . import excuses
from .judge import seconds as moment
from .scene import Scene

ROOT = "/var/lib/cachewarm"
FACTS = "/etc/cachewarm/facts.yaml"
# Native code of the machine's own class and of this one are kept apart.
LESSER_CPU = "x86-64-v3/amd-23-49/0123abcd"
BROKEN_SHARE = 0.05  # of the nodes, and at least one

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


def reboot_with_another_cpu(scene: Scene, chance: random.Random, wait: Wait) -> str:
    """As a virtual machine that its cloud starts again on another host: the facts of the node
    differ, and the boot that its agent recorded has changed. All nodes here share the kernel
    of the machine and so its boot id, so the record is changed instead. Once more: as before."""
    node = _power_off(scene, chance)
    if not node:
        return ""
    path = scene.cluster.on_disk(node, FACTS)
    facts = json.loads(path.read_text()) if path.exists() else {}
    if facts.pop("cpuClass", None) is None:
        facts["cpuClass"] = LESSER_CPU
    scene.cluster.write_in_node(node, FACTS, json.dumps(facts))
    record = scene.cluster.on_disk(node, f"{ROOT}/.state/node")
    if record.exists():
        record.write_text(with_another_boot(record.read_text()))
    _power_on(scene, node)
    return f"{node} as {facts.get('cpuClass', 'what it is')}"


def with_another_boot(record: str) -> str:
    """The agent's record of a node: GPU type, CPU class, and the boot id where it is known."""
    lines = record.splitlines()
    return "".join(f"{line}\n" for line in [*lines[:2], *[str(uuid.uuid4()) for _ in lines[2:3]]])


def fill_disk(scene: Scene, chance: random.Random, wait: Wait) -> str:
    """A file system without a free block takes the place of the node's, for programs and pods that
    start from now on."""
    node = chance.choice(NODES)
    scene.cluster.in_node(node, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", ROOT)
    span = scene.excuses.begin(time.time(), excuses.node(node))
    try:
        scene.cluster.in_node(node, "bash", "-c", f"cat /dev/zero > {ROOT}/filler || true")
        _renew_agent(scene, node)
        wait(chance.uniform(5, 20))
    finally:
        try:
            scene.cluster.in_node(node, "umount", "-l", ROOT)
            _renew_agent(scene, node)
        finally:
            scene.excuses.end(span, time.time())
    return node


def _renew_agent(scene: Scene, node: str) -> None:
    """A new agent sees the file system that is mounted now."""

    def renewed() -> bool:
        for pod in scene.product.pods("agent"):
            if pods.node(pod) == node:
                scene.product.kubectl.kill_pod(pods.name(pod))
        return True

    wait_for(f"the agent of {node} is deleted", renewed, 60)


def stop_agents(scene: Scene, chance: random.Random, wait: Wait) -> str:
    """The agents of a share of the nodes hang, and go on later unless kubelet has ended them."""
    nodes = chance.sample(NODES, max(1, math.floor(BROKEN_SHARE * len(NODES))))
    found = [pod for pod in scene.product.pods("agent")
             if pods.node(pod) in nodes and scene.within_reach(pod)]
    try:
        for pod in found:
            scene.cluster.signal_pod(pod, "STOP")
        wait(chance.uniform(10, 40))
    finally:
        for pod in found:
            scene.cluster.signal_pod(pod, "CONT")
    return " ".join(map(pods.name, found))


OUTAGES = (
    (cut_power, 4),
    (replace_node, 2),
    (reboot_with_another_cpu, 2),
    (fill_disk, 2),
    (stop_agents, 3),
)


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
