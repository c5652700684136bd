# SPDX-License-Identifier: Apache-2.0
"""A workload that needs nothing and compiles nothing: for what is about pods and not about code."""

from dataclasses import dataclass, field

from .workload import Workload, apart, on_nodes


def _probe_seldom_once_it_is_ready(container: dict) -> None:
    """A command in a container takes more of a processor than most of these containers do, so a
    readiness probe of one runs every second only until it first passes."""
    probe = container.get("readinessProbe", {})
    if "exec" in probe:
        container["startupProbe"] = {**probe, "failureThreshold": 3600}
        container["readinessProbe"] = {**probe, "periodSeconds": 10}


@dataclass
class Sleeper(Workload):
    """One busybox container; fresh objects from every call."""

    name: str
    replicas: int = 1
    nodes: tuple[str, ...] = ()
    one_per_node: bool = False
    script: str = "exec sleep 3600"
    container: dict = field(default_factory=dict)  # merged over the container, last
    spec: dict = field(default_factory=dict)  # merged over the pod spec, last
    tolerate: tuple[str, ...] = ()  # keys of taints
    strategy: dict | None = None

    def pod_spec(self) -> dict:
        container = {
            "name": "server",
            "image": "localhost/busybox:1",
            "command": ["/bin/sh", "-c", self.script],
            **self.container,
        }
        _probe_seldom_once_it_is_ready(container)
        spec: dict = {"terminationGracePeriodSeconds": 0, "containers": [container]}
        if self.nodes:
            spec["affinity"] = {"nodeAffinity": on_nodes(self.nodes)}
        if self.one_per_node:
            spec.setdefault("affinity", {})["podAntiAffinity"] = apart(self.selector)
        spec["tolerations"] = [{"key": key, "operator": "Exists"} for key in self.tolerate]
        return {**spec, **self.spec}
