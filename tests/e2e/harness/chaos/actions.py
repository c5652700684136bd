# SPDX-License-Identifier: Apache-2.0
"""The actions of the chaos, one at a time: kills, and edits that a user might make."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from .. import pods
from ..cluster import NODES
from ..product import LEASE
from .scene import LONGEST_HOLD, Scene

Action = Callable[[Scene, random.Random], str]
NOTHING = ""


def kill_leader(scene: Scene, chance: random.Random) -> str:
    return _kill_operator(scene, scene.product.leader())


def kill_standby(scene: Scene, chance: random.Random) -> str:
    leader = scene.product.leader()
    others = [pods.name(pod) for pod in scene.product.pods("operator") if pods.name(pod) != leader]
    return _kill_operator(scene, chance.choice(others)) if others else NOTHING


def kill_every_operator(scene: Scene, chance: random.Random) -> str:
    """Also the last one: until the next one is Ready, only the CronJob releases pods. Not while a
    node is off: its operator looks Ready for a while, and the judge would excuse nothing."""
    with scene.operators:
        if scene.off:
            return NOTHING
        found = [pod for pod in scene.product.pods("operator") if scene.within_reach(pod)]
        scene.excuses.operators_killed.append(time.time())
        return " ".join(_end(scene, pod) for pod in found)


def _kill_operator(scene: Scene, name: str) -> str:
    """Never kills the last live operator."""
    with scene.operators:
        found = scene.product.pods("operator")
        victim = next((pod for pod in found if pods.name(pod) == name), None)
        if not victim or not scene.within_reach(victim):
            return NOTHING
        return _end(scene, victim) if scene.another_operator_lives(but=name) else NOTHING


def _end(scene: Scene, pod: dict) -> str:
    """SIGKILL, and the pod goes too, so that its successor comes at once: kubelet makes a container
    that dies often wait for minutes, and nothing would be left to kill."""
    scene.product.kill(pod)
    scene.product.kubectl.kill_pod(pods.name(pod))
    return pods.name(pod)


def kill_agent(scene: Scene, chance: random.Random) -> str:
    found = [pod for pod in scene.product.pods("agent") if scene.within_reach(pod)]
    return _end(scene, chance.choice(found)) if found else NOTHING


def kill_builder(scene: Scene, chance: random.Random) -> str:
    """Its processes die; or it is deleted. A pod's processes die once only: two ends before it was
    ever Ready would count as a crash caused by the cache, which suspends the injection."""
    found = [pod for pod in scene.builder_pods() if _runs(scene, pod)]
    if not found:
        return NOTHING
    pod = chance.choice(found)
    if pods.restarts(pod) == 0 and chance.random() < 0.5:
        scene.excuses.killed.add(pod["metadata"]["uid"])
        scene.cluster.kill_in_pod(pod)
        return f"{pods.name(pod)} (SIGKILL)"
    scene.kubectl.kill_pod(pods.name(pod))
    return f"{pods.name(pod)} (deleted)"


def _runs(scene: Scene, pod: dict) -> bool:
    return pod["status"].get("phase") == "Running" and scene.within_reach(pod)


def delete_pod(scene: Scene, chance: random.Random) -> str:
    found = scene.workload_pods(scene.deployed(chance))
    if not found:
        return NOTHING
    pod = chance.choice(found)
    scene.kubectl.kill_pod(pods.name(pod))
    return pods.name(pod)


def delete_job(scene: Scene, chance: random.Random) -> str:
    found = scene.kubectl.list("jobs", "cachewarm.io/builder-warmup")
    if not found:
        return NOTHING
    name = pods.name(chance.choice(found))
    scene.kubectl.delete("job", name, "--wait=false")
    return name


def delete_node_cache(scene: Scene, chance: random.Random) -> str:
    node = chance.choice(NODES)
    scene.kubectl.delete("nodecache", node, "--wait=false")
    return node


def delete_lease(scene: Scene, chance: random.Random) -> str:
    """The first operator that asks leads; the previous leader has to notice that it lost."""
    holder = scene.product.lease_holder()
    scene.product.kubectl.delete("lease", LEASE, "--wait=false")
    return holder


def delete_deployment(scene: Scene, chance: random.Random) -> str:
    """With its pods; it comes back at once, or when its turn is next, or with put_right()."""
    workload = scene.deployed(chance)
    there = scene.kubectl.get("deployment", workload.name)
    if there:
        scene.kubectl.delete("deployment", workload.name, "--wait=false")
    if not there or chance.random() < 0.7:
        scene.kubectl.apply(workload.deployment)
    return workload.name


def delete_warmup(scene: Scene, chance: random.Random) -> str:
    """It comes back with another uid, after a moment or together with the next put_right()."""
    workload = scene.one(chance)
    scene.kubectl.delete("cachewarmup", workload.name, "--wait=false")
    if chance.random() < 0.7:
        scene.kubectl.apply(workload.desired)
    return workload.name


def edit_warmup(scene: Scene, chance: random.Random) -> str:
    workload = scene.one(chance)
    spec: dict = {"compile": {"settleSeconds": chance.randint(1, 4)}}
    if workload.deployment:
        mode = chance.choice(("Hold", "Hold", "Auto", "Never"))
        spec["gate"] = {"mode": mode, "maxHoldSeconds": chance.randint(3, LONGEST_HOLD)}
    spec["paused"] = chance.random() < 0.15
    scene.kubectl.apply(_merged(workload.desired, spec))
    return f"{workload.name} {spec}"


def _merged(desired: dict, spec: dict) -> dict:
    compile_spec = {**desired["spec"].get("compile", {}), **spec["compile"]}
    return {**desired, "spec": {**desired["spec"], **spec, "compile": compile_spec}}


def scale(scene: Scene, chance: random.Random) -> str:
    workload = scene.deployed(chance)
    size = chance.choice((0, 1, 2, 4, 6, 8)) if workload.name != "torch" else chance.randint(1, 4)
    scene.kubectl.scale("deployment", workload.name, size)
    return f"{workload.name} to {size}"


def edit_image(scene: Scene, chance: random.Random) -> str:
    """A changed image changes the key: it has to be built."""
    workload = scene.one(chance)
    image = chance.choice(workload.images)
    if workload.deployment:
        scene.kubectl.run("set", "image", f"deployment/{workload.name}", f"server={image}")
        return f"{workload.name} to {image}"
    template = workload.desired["spec"]["template"]
    template["spec"]["containers"][0]["image"] = image
    scene.kubectl.apply(workload.desired)
    return f"{workload.name} to {image}"


def edit_template(scene: Scene, chance: random.Random) -> str:
    """Another revision of the same key."""
    workload = scene.deployed(chance)
    value = f"FLAVOUR={chance.randint(0, 3)}"
    scene.kubectl.run("set", "env", f"deployment/{workload.name}", value)
    return f"{workload.name} {value}"


@dataclass(frozen=True)
class WeightedAction:
    action: Action
    weight: int


ACTIONS = (
    WeightedAction(kill_leader, 4),
    WeightedAction(kill_standby, 3),
    WeightedAction(kill_every_operator, 1),
    WeightedAction(kill_agent, 4),
    WeightedAction(kill_builder, 6),
    WeightedAction(delete_pod, 4),
    WeightedAction(delete_job, 3),
    WeightedAction(delete_node_cache, 2),
    WeightedAction(delete_lease, 1),
    WeightedAction(delete_deployment, 2),
    WeightedAction(delete_warmup, 2),
    WeightedAction(edit_warmup, 3),
    WeightedAction(scale, 8),
    WeightedAction(edit_image, 5),
    WeightedAction(edit_template, 3),
)
