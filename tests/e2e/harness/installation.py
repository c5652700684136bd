# SPDX-License-Identifier: Apache-2.0
"""manifests/install.yaml in any cluster: rendered with images and a configuration, applied, waited
for. What a user does by hand, in the same order."""

from collections.abc import Callable
from dataclasses import dataclass

import yaml

from .cluster import MANIFEST
from .kubectl import Kubectl
from .waiting import wait_for

NAMESPACE = "cachewarm-system"
PROGRAMS = ("operator", "agent")
# All nodes share the disk of the machine that tests or demo run on. On a disk that is nearly full,
# the default floor would refuse each fetch and evict each tree that no pod mounts. 0 leaves 64 MiB
# free; kubelet's own thresholds still protect the machine.
RESERVE = {"bytesPercent": 0, "inodesPercent": 0}
# Not every taint, as by default: tests keep the agent off a node with a taint of their own.
TOLERATIONS = [
    {"key": key, "operator": "Exists"}
    for key in (
        "cachewarm.io/warming",
        "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm",
        "node.kubernetes.io/not-ready",
    )
]


@dataclass(frozen=True)
class Image:
    """Where the nodes find one program."""

    reference: str
    pull_policy: str = "Always"
    version: str = ""  # pods are replaced when it changes, though the reference stays


def objects(config: dict, image: Callable[[str], Image]) -> list[dict]:
    """Returns the objects to install; `image` by program."""
    text = MANIFEST.read_text()
    rendered = [thing for thing in yaml.safe_load_all(text) if thing]
    content = yaml.safe_dump({"reserve": RESERVE, **config})
    for thing in rendered:
        if thing["kind"] == "ConfigMap" and "config.yaml" in thing.get("data", {}):
            thing["data"]["config.yaml"] = content
        if thing["kind"] in ("Deployment", "DaemonSet"):
            _use(thing["spec"]["template"], content, image)
        if thing["kind"] == "DaemonSet":
            thing["spec"]["template"]["spec"]["tolerations"] = TOLERATIONS
        if thing["kind"] == "CronJob":
            _use(thing["spec"]["jobTemplate"]["spec"]["template"], content, image)
    return rendered


def apply(kubectl: Kubectl, rendered: list[dict]) -> None:
    """The policy needs its CRD to be served before it means anything."""
    first = [o for o in rendered if o["kind"] in ("Namespace", "CustomResourceDefinition")]
    kubectl.apply(*first, server_side=True)
    wait_established(kubectl, first[1:])
    kubectl.apply(*(o for o in rendered if o not in first), server_side=True)


def wait_established(kubectl: Kubectl, definitions: list[dict]) -> None:
    """The API server serves these CRDs. `kubectl wait` fails on a CRD that has no status yet."""
    for definition in definitions:
        name = definition["metadata"]["name"]

        def established(name: str = name) -> bool:
            found = kubectl.get("crd", name) or {}
            conditions = found.get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        wait_for(f"{name} is served", established, 30)


def wait_ready(kubectl: Kubectl, seconds: float = 120) -> None:
    """Operator and agents as they were last applied, and no others, are ready."""

    def rolled_out() -> bool:
        deployment = kubectl.get("deployment", "cachewarm-operator")
        agents = kubectl.get("daemonset", "cachewarm-agent")
        return _settled(deployment, "readyReplicas", "replicas") and _settled(
            agents, "numberReady", "desiredNumberScheduled"
        )

    wait_for("operator and agents are ready", rolled_out, seconds, kubectl)


def _use(template: dict, config: str, image: Callable[[str], Image]) -> None:
    program = template["metadata"]["labels"]["app.kubernetes.io/component"]
    found = image(program if program in PROGRAMS else "operator")
    notes = template["metadata"].setdefault("annotations", {})
    notes["cachewarm.test/image"] = found.version
    notes["cachewarm.test/config"] = config
    for container in template["spec"]["containers"]:
        container["image"] = found.reference
        container["imagePullPolicy"] = found.pull_policy


def _settled(thing: dict | None, ready: str, wanted: str) -> bool:
    """The controller has seen the last change, and every pod of it, and no other, is ready."""
    if not thing or thing["status"].get("observedGeneration") != thing["metadata"]["generation"]:
        return False
    status = thing["status"]
    updated = status.get("updatedReplicas", status.get("updatedNumberScheduled", 0))
    return status.get(ready, 0) == status.get(wanted, 0) == updated > 0
