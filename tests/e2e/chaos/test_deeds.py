# SPDX-License-Identifier: Apache-2.0
"""The deeds of the chaos take only what they can do something to. No cluster: the API server and
the nodes are a list of pods."""

import random
from types import SimpleNamespace

import pytest
from harness.chaos.deeds import NOTHING, kill_agent, kill_builder, kill_leader, kill_standby
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
    """The pods are of every program of ours; the one that is named "leader" leads."""
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
    return Scene(cluster, product, kubectl, casts=[], off={OFF}), killed


DEEDS = {
    kill_agent: "agent",
    kill_leader: "leader",
    kill_standby: "standby",
    kill_builder: "builder",
}


def beside(deed) -> list[dict]:
    """An operator is killed only where another one lives."""
    other = {kill_leader: "other", kill_standby: "leader"}.get(deed)
    return [pod(other, ON)] if other else []


named = pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.__name__)


@named
@pytest.mark.parametrize("node", ["", OFF], ids=["not scheduled", "without power"])
def test_a_pod_on_no_node_and_one_on_a_node_without_power_are_left_alone(deed, node):
    whom, killed = scene(pod(DEEDS[deed], node), *beside(deed))
    assert deed(whom, random.Random(1)) == NOTHING
    assert not killed


@named
def test_the_one_that_runs_is_found_beside_those_that_are_out_of_reach(deed):
    name, others = DEEDS[deed], beside(deed)
    out_of_reach = [] if others else [pod("new", ""), pod("dark", OFF)]
    whom, killed = scene(*out_of_reach, pod(name, ON), *others)
    choice = random.Random(1)
    choice.random = lambda: 0.0  # a builder's processes, not its pod
    assert name in deed(whom, choice)
    assert killed == [f"{name} on {ON}"]
