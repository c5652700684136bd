# SPDX-License-Identifier: Apache-2.0
"""The controllers that the tests create for one pod template."""


class Workload:
    """Base of a dataclass with name, replicas, strategy, labels of the pods and a pod spec.

    Every call returns fresh objects.
    """

    name: str
    replicas: int
    strategy: dict | None

    @property
    def selector(self) -> dict[str, str]:
        return {"app": self.name}

    def pod_labels(self) -> dict[str, str]:
        return self.selector

    def pod_spec(self) -> dict:
        raise NotImplementedError

    def template(self) -> dict:
        return {"metadata": {"labels": self.pod_labels()}, "spec": self.pod_spec()}

    def pod(self, name: str = "") -> dict:
        metadata = {"name": name or self.name, "labels": self.pod_labels()}
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


def apart(selector: dict[str, str]) -> dict:
    """A podAntiAffinity that gives each of the selected pods a node of its own."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": selector},
    }
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def on_nodes(names: tuple[str, ...]) -> dict:
    """A nodeAffinity for the nodes with these names."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(names)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}
