# SPDX-License-Identifier: Apache-2.0
"""Questions about pods, answered from the API object."""

from . import starts
from .kubectl import Kubectl
from .waiting import wait_for


def name(pod: dict) -> str:
    return pod["metadata"]["name"]


def node(pod: dict) -> str:
    return pod["spec"].get("nodeName", "")


def ready(pod: dict) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def deleted(pod: dict) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def gates(pod: dict) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def restarts(pod: dict) -> int:
    return sum(status["restartCount"] for status in pod["status"].get("containerStatuses", []))


def annotation(pod: dict, key: str) -> str:
    return pod["metadata"].get("annotations", {}).get(key, "")


def of(kubectl: Kubectl, app: str) -> list[dict]:
    """The pods labelled app=..., oldest first, without those that are being deleted."""
    pods = [pod for pod in kubectl.list("pods", f"app={app}") if not deleted(pod)]
    return sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], name(pod)))


def wait_ready(kubectl: Kubectl, app: str, count: int, seconds: float) -> list[dict]:
    """Exactly `count` pods, all Ready."""

    def settled() -> list[dict]:
        pods = of(kubectl, app)
        return pods if len(pods) == count and all(ready(pod) for pod in pods) else []

    return wait_for(f"{count} pods of {app} Ready", settled, seconds, kubectl)


def start(kubectl: Kubectl, pod: dict) -> starts.Start:
    """Parses the pod's log line about its last start; it may appear shortly after readiness."""
    return wait_for(
        f"READY line of {name(pod)}", lambda: starts.parse(kubectl.logs(name(pod))), 20, kubectl
    )
