# SPDX-License-Identifier: Apache-2.0
"""A workload that needs nothing and compiles nothing: for what is about pods and not about code."""

from dataclasses import dataclass, field


def _probe_seldom_once_it_is_ready(container: dict) -> None:
    """A command in a container takes more of a processor than most of these containers do, so a
    readiness probe of one runs every second only until it first passes."""
    probe = container.get("readinessProbe", {})
    if "exec" in probe:
        container["startupProbe"] = {**probe, "failureThreshold": 3600}
        container["readinessProbe"] = {**probe, "periodSeconds": 10}


def apart(selector: dict[str, str]) -> dict:
    """A podAntiAffinity that gives each of the selected pods a node of its own."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": selector},
    }
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


@dataclass
class Sleeper:
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

    @property
    def selector(self) -> dict[str, str]:
        return {"app": self.name}

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
            names = {
                "key": "kubernetes.io/hostname",
                "operator": "In",
                "values": list(self.nodes),
            }
            terms = {"nodeSelectorTerms": [{"matchExpressions": [names]}]}
            spec["affinity"] = {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            }
        if self.one_per_node:
            spec.setdefault("affinity", {})["podAntiAffinity"] = apart(self.selector)
        spec["tolerations"] = [{"key": key, "operator": "Exists"} for key in self.tolerate]
        return {**spec, **self.spec}

    def template(self) -> dict:
        return {"metadata": {"labels": {"app": self.name}}, "spec": self.pod_spec()}

    def pod(self, name: str) -> dict:
        metadata = {"name": name, "labels": {"app": self.name}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self.pod_spec()}

    def deployment(self) -> dict:
        spec: dict = {
            "replicas": self.replicas,
            "selector": {"matchLabels": self.selector},
            "template": self.template(),
        }
        if self.strategy:
            spec["strategy"] = self.strategy
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name},
            "spec": spec,
        }

    def stateful_set(self) -> dict:
        thing = self.deployment()
        thing["kind"] = "StatefulSet"
        thing["spec"]["serviceName"] = self.name
        return thing

    def job(self) -> dict:
        template = self.template()
        template["spec"]["restartPolicy"] = "Never"
        spec = {"template": template, "backoffLimit": 0, "completions": self.replicas}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": self.name},
            "spec": spec,
        }
