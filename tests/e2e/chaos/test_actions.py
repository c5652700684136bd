# SPDX-License-Identifier: Apache-2.0
"""Chaos actions choose only pods that they can act on. No cluster: the API server and the nodes are
a list of pods."""

import random
from types import SimpleNamespace

import pytest
from harness.chaos.actions import NOTHING, kill_agent, kill_builder, kill_leader, kill_standby
from harness.chaos.scene import Scene
from harness.cluster import NODES

ON, OFF = NODES[:2]


def pod(name: str, node: str) -> dict:
    spec = {"nodeName": node} if node else {}
    condition = {"type": "Ready", "status": "True"}
    status = {"phase": "Running", "conditions": [condition]}
    metadata = {"name": name, "uid": name, "labels": {"cachewarm.io/builder-key": "k"}}
    return {"metadata": metadata, "spec": spec, "status": status}


def scene(*there: dict) -> tuple[Scene, list[str]]:
    """The pods belong to every cachewarm program; the pod named "leader" leads."""
    killed: list[str] = []

    def kill(victim: dict) -> None:
        killed.append(f"{victim['metadata']['name']} on {victim['spec']['nodeName']}")

    kubectl = SimpleNamespace(
        kill_pod=lambda name: None,
        list=lambda kind, *_: list(there) if kind == "pods" else [],
    )
    product = SimpleNamespace(
        pods=lambda program: list(there), leader=lambda: "leader", kill=kill, kubectl=kubectl
    )
    cluster = SimpleNamespace(kill_in_pod=kill)
    return Scene(cluster, product, kubectl, workloads=[], off={OFF}), killed


ACTIONS = {
    kill_agent: "agent",
    kill_leader: "leader",
    kill_standby: "standby",
    kill_builder: "builder",
}


def beside(action) -> list[dict]:
    """An operator is killed only where another one lives."""
    other = {kill_leader: "other", kill_standby: "leader"}.get(action)
    return [pod(other, ON)] if other else []


named = pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)


@named
@pytest.mark.parametrize("node", ["", OFF], ids=["not scheduled", "without power"])
def test_action_skips_unscheduled_and_unreachable_pods(action, node):
    whom, killed = scene(pod(ACTIONS[action], node), *beside(action))
    assert action(whom, random.Random(1)) == NOTHING
    assert not killed


@named
def test_action_chooses_the_running_pod(action):
    name, others = ACTIONS[action], beside(action)
    out_of_reach = [] if others else [pod("new", ""), pod("dark", OFF)]
    whom, killed = scene(*out_of_reach, pod(name, ON), *others)
    choice = random.Random(1)
    choice.random = lambda: 0.0  # a builder's processes, not its pod
    assert name in action(whom, choice)
    assert killed == [f"{name} on {ON}"]
