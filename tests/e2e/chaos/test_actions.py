# SPDX-License-Identifier: Apache-2.0
"""Chaos actions choose only pods that they can act on. No cluster: the API server and the nodes are
a list of pods."""

import random
from types import SimpleNamespace

import pytest
from harness.chaos import outages
from harness.chaos.actions import (
    NOTHING,
    kill_agent,
    kill_builder,
    kill_every_operator,
    kill_leader,
    kill_standby,
)
from harness.chaos.scene import Scene
from harness.cluster import NODES
from harness.warmup import Warmup

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


def test_killed_processes_are_recorded_before_the_kill():
    whom, _ = scene(pod("builder", ON))
    choice = random.Random(1)
    choice.random = lambda: 0.0
    whom.cluster.kill_in_pod = lambda victim: seen.append(set(whom.excuses.killed))
    seen: list[set[str]] = []
    assert kill_builder(whom, choice)
    assert seen == [{"builder"}]


def test_every_operator_includes_the_last_one():
    whom, killed = scene(pod("leader", ON), pod("other", ON), pod("new", ""))
    whom.off.clear()
    assert kill_every_operator(whom, random.Random(1)) == "leader other"
    assert killed == [f"leader on {ON}", f"other on {ON}"]
    assert len(whom.excuses.operators_killed) == 1


def test_every_operator_lives_while_a_node_is_off():
    whom, killed = scene(pod("leader", ON), pod("dark", OFF))
    assert kill_every_operator(whom, random.Random(1)) == NOTHING and not killed


@pytest.mark.parametrize("before,lines", [("gpu\ncpu\nboot\n", 3), ("gpu\ncpu\n", 2), ("gpu", 1)])
def test_recorded_boot_changes_and_nothing_else(before: str, lines: int):
    after = outages.with_another_boot(before).splitlines()
    assert after[:2] == before.splitlines()[:2] and len(after) == lines
    assert after[2:] != before.splitlines()[2:] or lines < 3


def wait_and(ends: list[str], what: str):
    def wait(seconds: float) -> None:
        ends.append(what)

    return wait


def test_stopped_agents_go_on_also_after_an_error():
    whom, _ = scene(*(pod(f"agent-{node}", node) for node in NODES))
    sent: list[tuple[str, str]] = []
    whom.off.clear()
    whom.cluster.signal_pod = lambda victim, what: sent.append((victim["metadata"]["name"], what))

    def broken(seconds: float) -> None:
        raise ValueError

    with pytest.raises(ValueError):
        outages.stop_agents(whom, random.Random(1), broken)
    (stopped, stop), (continued, go_on) = sent
    assert stopped == continued and (stop, go_on) == ("STOP", "CONT"), "one of the three nodes"


def test_filled_disk_is_unmounted_only_after_it_was_mounted():
    done: list[str] = []
    whom, _ = scene(pod("agent", NODES[0]))
    whom.cluster.in_node = lambda node, *words: done.append(words[0])
    node = outages.fill_disk(whom, random.Random(1), wait_and(done, "wait"))
    assert done == ["mount", "bash", "wait", "umount"]
    assert whom.excuses.touches(f"node {node}", 0, 1e12)

    def fails(node: str, *words: str) -> None:
        done.append(words[0])
        raise AssertionError

    done.clear()
    whom.cluster.in_node = lambda node, *words: fails(node, *words) if words[0] == "umount" else ""
    with pytest.raises(AssertionError):
        outages.fill_disk(whom, random.Random(1), wait_and(done, "wait"))
    assert not whom.excuses.touches(f"node {node}", 1e12, 2e12), "no excuse stays open"

    done.clear()
    whom.cluster.in_node = fails
    with pytest.raises(AssertionError):
        outages.fill_disk(whom, random.Random(1), wait_and(done, "wait"))
    assert done == ["mount"]


def test_look_before_anything_is_put_right_finds_each_pod_that_has_not_started():
    there = {
        "ready": pod("ready", ON),
        "held": pod("held", ""),
        "waits": pod("waits", ON),
        "ended": pod("ended", ON),
        "dying": pod("dying", ON),
    }
    for each in there.values():
        each["metadata"]["labels"] = {}
    there["held"]["spec"]["schedulingGates"] = [{"name": "cachewarm.io/wait-for-cache"}]
    there["waits"]["status"]["conditions"] = there["ended"]["status"]["conditions"] = []
    there["ended"]["status"]["phase"] = "Succeeded"
    there["dying"]["metadata"]["deletionTimestamp"] = "2026-11-26T12:00:00Z"
    builder = pod("builder", ON)
    builder["status"]["conditions"] = []
    lists = {
        "pods": [*there.values(), builder],
        "nodes": [{"metadata": {"name": OFF}, "status": {}}],
        "deployments": [{"metadata": {"name": "d"}, "spec": {"replicas": 2},
                         "status": {"readyReplicas": 1}}],
    }
    empty = SimpleNamespace(list=lambda kind: [])
    kubectl = SimpleNamespace(list=lists.get, namespace="n", within=lambda name: empty)
    found = Scene(None, None, kubectl, workloads=[]).unstarted()
    assert found == [f"{OFF} is not Ready", "held is held", "waits is Running and not Ready",
                     "dying is being deleted", "d: 1 of 2 pods are Ready"]


@pytest.mark.parametrize("nodes, resumed, at, is_lifted", [
    ([ON], False, 20, True),
    ([ON], False, 99, False),  # the disk was free long before
    ([ON, OFF], False, 20, False),  # a pod failed on a node with a free disk too
    ([ON], True, 20, False),
    ([], False, 20, False),
])
def test_only_a_suspension_by_a_full_disk_is_lifted(
    nodes: list[str], resumed: bool, at: int, is_lifted: bool
):
    suspension = {"nodes": [{"name": node} for node in nodes],
                  "suspendedTime": f"1970-01-01T00:{at // 60:02}:{at % 60:02}Z",
                  **({"resumedTime": "1970-01-01T00:30:00Z"} if resumed else {})}
    run: list[tuple[str, ...]] = []
    kubectl = SimpleNamespace(get=lambda *_: {"status": {"suspension": suspension}},
                              run=lambda *words: run.append(words))
    whom = Scene(None, None, kubectl, workloads=[])
    whom.excuses.end(whom.excuses.begin(0, f"node {ON}"), 10)
    whom.resume(Warmup(kubectl, "light"))
    assert run == ([("rollout", "restart", "deployment/light")] if is_lifted else [])
