# SPDX-License-Identifier: Apache-2.0
"""CacheWarmups: made for a workload, and asked about from outside, by the API alone."""

import json
from dataclasses import dataclass

from . import pods
from .kubectl import Kubectl, KubectlError
from .waiting import wait_for

API_VERSION = "cachewarm.io/v1alpha1"
GATE = "cachewarm.io/wait-for-cache"
DIRECTORY = "/var/cache/cachewarm"


def make_warmup(name: str, **spec) -> dict:
    return {
        "apiVersion": API_VERSION,
        "kind": "CacheWarmup",
        "metadata": {"name": name},
        "spec": spec,
    }


def warmup_for(workload: dict, **spec) -> dict:
    """For a Deployment, StatefulSet or Job as tests make them; settles fast by default."""
    reference = {
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        "name": workload["metadata"]["name"],
    }
    spec["compile"] = {"settleSeconds": 2, **spec.get("compile", {})}
    return make_warmup(reference["name"], workloadRef=reference, **spec)


@dataclass
class Warmup:
    """One CacheWarmup of the kubectl's namespace, read again by every call."""

    kubectl: Kubectl
    name: str

    def read(self) -> dict:
        return self.kubectl.get("cachewarmup", self.name) or {}

    @property
    def uid(self) -> str:
        return self.read()["metadata"]["uid"]

    @property
    def status(self) -> dict:
        return self.read().get("status", {})

    @property
    def bundles(self) -> list[dict]:
        return self.status.get("bundles", [])

    @property
    def builders(self) -> list[dict]:
        return self.status.get("builders", [])

    @property
    def counts(self) -> dict[str, int]:
        """First starts by result, without those that never happened."""
        counts = self.status.get("starts", {}).get("counts", {})
        return {result: count for result, count in counts.items() if count}

    @property
    def injection(self) -> dict:
        return self.status.get("injection", {})

    def condition(self, kind: str) -> dict:
        conditions = self.status.get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def wait_condition(self, kind: str, status: str, reason: str = "", seconds=60.0) -> dict:
        def reached() -> dict | None:
            seen = self.condition(kind)
            right = seen.get("status") == status and reason in ("", seen.get("reason"))
            return seen if right else None

        what = f"{kind}={status} {reason} of cachewarmup {self.name}"
        return wait_for(what, reached, seconds, self.kubectl)

    def wait_injecting(self, seconds=60.0) -> None:
        """The operator reports it, and the API server acts on it, which may be a moment later."""
        self.wait_condition("Ready", "True", "Injecting", seconds)
        wait_for(
            f"pods of {self.name} are injected", self._is_pod_injected, seconds, self.kubectl
        )

    def _is_pod_injected(self) -> bool:
        """Dry-runs a pod. True also where a quota forbids it, so that nothing can be seen."""
        labels, container = (self.injection.get(key) for key in ("labels", "container"))
        if not labels or not container:
            return False
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{self.name}-probe", "labels": labels},
            "spec": {
                "containers": [{"name": container, "image": "localhost/busybox:1"}],
                "nodeSelector": self.injection.get("nodeSelector", {}),
            },
        }
        try:
            return injected(self.kubectl.create(pod, "--dry-run=server"))
        except KubectlError as refused:
            if "exceeded quota" in str(refused):
                return True
            raise

    def wait_admission(self, pod: dict, seconds=60.0) -> None:
        """An API server that has just started may admit pods before it has read its policies'
        parameters: those pods start without the cache."""

        def acts() -> bool:
            return injected(self.kubectl.create(pod, "--dry-run=server"))

        wait_for(f"pods of {self.name} are injected again", acts, seconds, self.kubectl)

    def wait_bundles(self, count: int, seconds=240.0) -> list[dict]:
        def published() -> list[dict]:
            return self.bundles if len(self.bundles) >= count else []

        return wait_for(f"{count} bundles of {self.name}", published, seconds, self.kubectl)

    def wait_warm(self, seconds=240.0) -> None:
        """Every type has its bundle on every node that fits."""
        self.wait_condition("Warm", "True", "Distributed", seconds)

    def wait_counted(self, expected: dict[str, int], seconds=120.0) -> None:
        wait_for(
            f"{self.name} counts {expected}",
            lambda: self.counts == expected,
            seconds,
            self.kubectl,
        )

    def active_on(self, node: str) -> set[str]:
        """Digests of the bundles that the node's agent reports as active for this warmup."""
        return {
            bundle["digest"]
            for bundle in self._reported_by(node).get("bundles", [])
            if bundle.get("state") == "Active"
        }

    def prepared_on(self, node: str) -> list[str]:
        """Users whose directory the node's agent reports as usable for this warmup."""
        return self._reported_by(node).get("prepared", [])

    def _reported_by(self, node: str) -> dict:
        cache = self.kubectl.get("nodecache", node) or {}
        entries = cache.get("status", {}).get("warmups", [])
        uid = self.uid
        return next((entry for entry in entries if entry["uid"] == uid), {})

    def jobs(self) -> list[dict]:
        return self.kubectl.list("jobs", f"cachewarm.io/builder-warmup={self.uid}")

    def job_pods(self) -> list[dict]:
        return self.kubectl.list("pods", f"cachewarm.io/builder-warmup={self.uid}")


def events(kubectl: Kubectl, name: str = "") -> list[dict]:
    """Events about one object of the namespace, or about all; by cachewarm or Kubernetes."""
    found = kubectl.list("events.events.k8s.io")
    return [e for e in found if name in ("", e.get("regarding", {}).get("name"))]


def wait_event(kubectl: Kubectl, name: str, reason: str, seconds=60.0) -> dict:
    def heard() -> dict | None:
        return next((e for e in events(kubectl, name) if e.get("reason") == reason), None)

    return wait_for(f"event {reason} about {name}", heard, seconds, kubectl)


def injected(pod: dict) -> bool:
    return any(volume["name"] == "cachewarm" for volume in pod["spec"].get("volumes", []))


def gated(pod: dict) -> bool:
    return GATE in pods.gates(pod)


def released(pod: dict) -> str:
    """Why our gate was taken from it; "" for a pod that was never held."""
    return pods.annotation(pod, "cachewarm.io/released")


def start_note(pod: dict) -> dict:
    """Returns the operator's annotation about the pod's first start; {} while there is none."""
    return json.loads(pods.annotation(pod, "cachewarm.io/start") or "{}")
