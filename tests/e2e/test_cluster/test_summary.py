# SPDX-License-Identifier: Apache-2.0
"""The summary of a cluster names the cause of a failed wait in few lines. No cluster."""

from harness.kubectl import KubectlError
from harness.summary import COLUMNS, LINES, summarize
from harness.waiting import diagnose

NOT_READY = {
    "type": "Ready",
    "status": "False",
    "reason": "ContainersNotReady",
    "message": "containers with unready status: [server]",
}


def pod(name: str, phase="Pending", node="node-a", **status) -> dict:
    spec = {"nodeName": node} if node else {}
    return {
        "metadata": {"name": name, "namespace": "test"},
        "spec": spec,
        "status": {"phase": phase, **status},
    }


def node(name: str, *conditions: tuple[str, str], taints=()) -> dict:
    found = [
        {"type": kind, "status": status, "reason": "KubeletSays", "message": "disk"}
        for kind, status in conditions
    ]
    return {
        "metadata": {"name": name},
        "spec": {"taints": list(taints)},
        "status": {"conditions": found},
    }


def event(number: int, kind="Warning", message="pull failed") -> dict:
    return {
        "type": kind,
        "reason": f"Reason{number}",
        "message": message,
        "lastTimestamp": f"2026-11-28T10:00:{number:02}Z",
        "involvedObject": {"kind": "Pod", "name": "server-0"},
    }


def warmup(*conditions: tuple[str, str, str], builders=()) -> dict:
    found = [
        {"type": kind, "status": status, "reason": reason, "message": f"{kind} words"}
        for kind, status, reason in conditions
    ]
    return {
        "metadata": {"name": "w"},
        "status": {"conditions": found, "builders": list(builders)},
    }


def builder(state: str, key: str, **fields) -> dict:
    return {"state": state, "attempt": 2, "key": key * 64, **fields}


def test_healthy_cluster_has_an_empty_summary():
    ready = {"type": "Ready", "status": "True"}
    healthy = {
        "pods": [pod("a", "Running", conditions=[ready]), pod("b", "Succeeded")],
        "events": [event(1, "Normal")],
        "cachewarmups": [warmup(("Ready", "True", "Injecting"), ("Degraded", "False", "Healthy"))],
        "nodes": [node("node-a", ("Ready", "True"), ("DiskPressure", "False"))],
    }
    assert summarize(healthy) == []
    assert summarize({}) == []


def test_unscheduled_pod_shows_the_reason_of_its_condition():
    unscheduled = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available:\n 3 Insufficient cpu.",
    }
    lines = summarize({"pods": [pod("a", node="", conditions=[unscheduled])]})
    words = "PodScheduled Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."
    assert lines == [f"pod test/a Pending on no node: {words}"]


def test_container_states_replace_the_condition_that_only_counts_them():
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    ended = {"terminated": {"reason": "Error", "exitCode": 3, "message": "no cache"}}
    server = {"name": "server", "state": waiting, "lastState": ended}
    failed = pod("a", "Running", conditions=[NOT_READY], containerStatuses=[server])
    assert summarize({"pods": [failed]}) == [
        "pod test/a Running on node-a: server CrashLoopBackOff: back-off 10s; "
        "server exited with 3 Error: no cache"
    ]


def test_init_containers_and_unready_running_containers_are_named():
    ended = {"terminated": {"reason": "Error", "exitCode": 1}}
    done = {"terminated": {"reason": "Completed", "exitCode": 0}}
    statuses = [{"name": "prepare", "state": ended}, {"name": "first", "state": done}]
    running = [{"name": "server", "ready": False, "state": {"running": {}}}]
    lines = summarize(
        {"pods": [pod("a", initContainerStatuses=statuses, containerStatuses=running)]}
    )
    assert lines == [
        "pod test/a Pending on node-a: prepare exited with 1 Error; server runs and is not ready"
    ]


def test_evicted_and_deleted_pods_say_so():
    evicted = pod("a", "Failed", reason="Evicted", message="low on memory")
    deleted = pod("b", "Running", conditions=[NOT_READY])
    deleted["metadata"]["deletionTimestamp"] = "2026-11-28T10:00:00Z"
    assert summarize({"pods": [evicted, deleted]}) == [
        "pod test/a Failed on node-a: Evicted: low on memory",
        "pod test/b Running on node-a: being deleted; "
        "Ready ContainersNotReady: containers with unready status: [server]",
    ]


def test_only_the_last_warnings_are_shown_newest_last():
    found = [event(number) for number in (9, 3, 1, 2, 4, 5, 6, 7, 8, 10)] + [event(11, "Normal")]
    lines = summarize({"events": found})
    assert lines == [f"event Pod/server-0: Reason{number}: pull failed" for number in range(3, 11)]


def test_event_of_the_newer_api_is_sorted_by_its_own_time():
    newer = {**event(1), "lastTimestamp": None, "eventTime": "2026-11-28T10:00:30.000001Z"}
    lines = summarize({"events": [newer, event(2)]})
    assert [line.split()[2] for line in lines] == ["Reason2:", "Reason1:"]


def test_conditions_that_are_wrong_and_builds_are_shown():
    wrong = warmup(
        ("Ready", "True", "Injecting"),
        ("Warm", "False", "Building"),
        ("Degraded", "True", "BuildFailed"),
        builders=[
            builder("Captured", "a"),
            builder("Failed", "b", reason="BuilderCrashed", message="exit code 1"),
        ],
    )
    assert summarize({"cachewarmups": [wrong]}) == [
        "warmup w: Warm=False Building: Warm words",
        "warmup w: Degraded=True BuildFailed: Degraded words",
        "warmup w: build aaaaaaaa Captured, attempt 2",
        "warmup w: build bbbbbbbb Failed, attempt 2 BuilderCrashed: exit code 1",
    ]


def test_unready_pressed_and_tainted_nodes_are_shown():
    taint = {"key": "cachewarm.io/warming", "effect": "NoSchedule"}
    nodes = [
        node("a", ("Ready", "Unknown")),
        node("b", ("Ready", "True"), ("DiskPressure", "True"), taints=[taint]),
        node("c"),
    ]
    assert summarize({"nodes": nodes}) == [
        "node a: Ready=Unknown KubeletSays: disk",
        "node b: DiskPressure=True KubeletSays: disk; taint cachewarm.io/warming:NoSchedule",
        "node c: no condition Ready",
    ]


def test_summary_is_bounded_and_says_what_it_leaves_out():
    crowd = {
        "pods": [pod(f"p{number}") for number in range(30)],
        "events": [event(number, message="m" * 500) for number in range(30)],
        "cachewarmups": [
            warmup(
                ("Ready", "False", "NoAdmission"),
                builders=[builder("Captured", "a")] * 20 + [builder("Failed", "b")],
            )
        ],
        "nodes": [node(f"n{number}") for number in range(30)],
    }
    lines = summarize(crowd)
    assert len(lines) <= LINES and max(map(len, lines)) <= COLUMNS
    assert "24 more of pods" in "\n".join(lines)
    assert "build bbbbbbbb Failed" in lines[-1], "a build that is done is left out first"


class Broken:
    """A kubectl whose API server answers questions about pods only."""

    def __init__(self, namespace="test"):
        self.namespace = namespace

    def within(self, namespace: str) -> "Broken":
        return Broken(namespace)

    def run(self, *words: str, **how: object) -> str:
        raise KubectlError("refused")

    def list(self, kind: str) -> list[dict]:
        if kind != "pods":
            raise KubectlError("connection\nrefused")
        return [pod(f"of-{self.namespace}")]


def test_answers_that_fail_do_not_hide_the_others():
    last = diagnose(Broken()).split("--- summary\n")[1].splitlines()
    assert "pod test/of-test Pending on node-a" in last
    assert "pod test/of-cachewarm-system Pending on node-a" in last
    assert "nodes: connection refused" in last
