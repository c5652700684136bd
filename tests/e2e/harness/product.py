# SPDX-License-Identifier: Apache-2.0
"""Cachewarm in the built-in cluster: images into the nodes, and files below /etc/cachewarm by which
a node declares the GPU type and CPU class that it plays."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from . import installation, pods
from .cluster import NODES, REPOSITORY, THROTTLED_REGISTRY, Cluster
from .installation import NAMESPACE, PROGRAMS, Image
from .kubectl import Kubectl
from .waiting import wait_for

STORE = f"oci://{THROTTLED_REGISTRY}/cachewarm"
LEASE = "cachewarm-operator"
CRON_JOB = "cachewarm-release"
H100 = "nvidia/h100-80gb-hbm3/sm_90"  # a GPU type that nodes play in tests
_IMAGES = REPOSITORY / "build" / "images"


def configuration(store: str = STORE, **settings: object) -> dict:
    """The content of config.yaml: all nodes share one store; every node declares its facts."""
    return {
        "store": store,
        "root": "/var/lib/cachewarm",
        "logLevel": "debug",
        "registry": {"insecure": [THROTTLED_REGISTRY]},
        "nodeFacts": "/etc/cachewarm-node/facts.yaml",
        "redis": {"endpoint": True},
        **settings,
    }


def selector(program: str) -> str:
    return f"app.kubernetes.io/name=cachewarm,app.kubernetes.io/component={program}"


class Product:
    """One installation in the built-in cluster."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.kubectl: Kubectl = cluster.kubectl().within(NAMESPACE)
        self.facts: dict[str, dict] = {}

    def install(self, config: dict | None = None, facts: dict[str, dict] | None = None) -> None:
        """Idempotent: programs restart only where their image, configuration or facts changed.
        `facts` by node, as for declare(), a node that is not in it is probed; None keeps those
        that were given last."""
        self.facts = self.facts if facts is None else facts
        archives = [str(_IMAGES / f"{program}.tar") for program in PROGRAMS]
        self.cluster.verb("load-image", *archives)
        changed = [node for node in NODES if self._declare(node, self.facts.get(node, {}))]
        rendered = installation.objects(config or configuration(), _loaded)
        _spare_the_slow(rendered)
        installation.apply(self.kubectl, rendered)
        self.wait_ready()
        if changed:
            self.restart("agent", *changed)

    def declare(self, node: str, facts: dict) -> None:
        """Sets the facts of the node: {"gpuType": ..., "cpuClass": ...}; {} probes everything.
        Its agent reads it when it starts, and is restarted where it changed."""
        if self._declare(node, facts):
            self.restart("agent", node)

    def declare_all(self, facts: dict[str, dict]) -> None:
        changed = [node for node in NODES if self._declare(node, facts.get(node, {}))]
        if changed:
            self.restart("agent", *changed)

    def _declare(self, node: str, facts: dict) -> bool:
        path = "/etc/cachewarm/facts.yaml"
        content = json.dumps(facts)
        known = self.cluster.on_disk(node, path)
        if known.exists() and known.read_text() == content:
            return False
        self.cluster.write_in_node(node, path, content)
        return True

    def play_cpu(self, node: str, capability: str) -> None:
        """Model servers on this node see a CPU with no more than `capability`; "" ends it."""
        path = "/etc/cachewarm-test/isa"
        if capability:
            self.cluster.write_in_node(node, path, capability)
        else:
            self.cluster.remove_in_node(node, path)

    def wait_ready(self, seconds: float = 120) -> None:
        installation.wait_ready(self.kubectl, seconds)

    def pods(self, program: str) -> list[dict]:
        found = self.kubectl.list("pods", selector(program))
        return [pod for pod in found if not pods.deleted(pod)]

    def agent(self, node: str) -> dict:
        return next(pod for pod in self.pods("agent") if pods.node(pod) == node)

    def restart(self, program: str, *nodes: str) -> None:
        """New pods, gracefully, and waits for them; of the agents only those of `nodes`, if any."""
        for pod in self.pods(program):
            if not nodes or pods.node(pod) in nodes:
                self.kubectl.delete("pod", pods.name(pod), "--wait=true")
        self.wait_ready()

    def kill(self, pod: dict) -> None:
        """SIGKILL to the program of a pod, from outside: its container restarts in the same pod."""
        self.cluster.kill_in_pod(pod)

    def kill_leader(self) -> None:
        name = self.leader()
        self.kill(next(pod for pod in self.pods("operator") if pods.name(pod) == name))

    def lease_holder(self) -> str:
        """The identity of the operator process that leads; "" while nobody does."""
        lease = self.kubectl.get("lease", LEASE) or {}
        return lease.get("spec", {}).get("holderIdentity", "")

    def end_lease(self, holder: str) -> None:
        """As if the Lease of a holder that is dead had run out."""
        self.kubectl.patch(
            "lease",
            LEASE,
            [
                {"op": "test", "path": "/spec/holderIdentity", "value": holder},
                {"op": "replace", "path": "/spec/holderIdentity", "value": ""},
                {"op": "replace", "path": "/spec/leaseDurationSeconds", "value": 1},
            ],
        )

    def leader(self) -> str:
        """The name of the operator's pod that holds the Lease; "" while nobody does."""
        holder = self.lease_holder()
        return next((n for n in map(pods.name, self.pods("operator")) if n in holder), "")

    def scale_operator(self, replicas: int) -> None:
        self.kubectl.scale("deployment", "cachewarm-operator", replicas)
        wait_for(
            f"{replicas} operators", lambda: len(self._running()) == replicas, 120, self.kubectl
        )

    @contextmanager
    def without_operators(self) -> Iterator["Product"]:
        self.scale_operator(0)
        yield self
        self.scale_operator(2)

    @contextmanager
    def without_cron_job(self) -> Iterator[None]:
        """Suspends the CronJob, which could release a pod before the operator does."""

        def runs() -> bool:
            return bool(self.kubectl.get("cronjob", CRON_JOB)["status"].get("active"))

        try:
            self.kubectl.patch("cronjob", CRON_JOB, {"spec": {"suspend": True}})
            wait_for("no Job of it runs", lambda: not runs(), 90, self.kubectl)
            yield
        finally:
            self.kubectl.patch("cronjob", CRON_JOB, {"spec": {"suspend": False}})

    def run_cron_job_now(self, name: str) -> str:
        """Runs the CronJob's next Job at once. Returns its log."""
        self.kubectl.run("create", "job", name, f"--from=cronjob/{CRON_JOB}")

        def ended() -> bool:
            status = (self.kubectl.get("job", name) or {}).get("status", {})
            assert not status.get("failed"), self.kubectl.logs(f"job/{name}")
            return bool(status.get("succeeded"))

        wait_for(f"job {name} has ended", ended, 60, self.kubectl)
        text = self.kubectl.logs(f"job/{name}")
        self.kubectl.delete("job", name)
        return text

    def _running(self) -> list[dict]:
        found = self.kubectl.list("pods", selector("operator"))
        return [pod for pod in found if pods.deleted(pod) or pods.ready(pod)]

    def metrics(self, program: str) -> str:
        """The text of /metrics of every pod of the program, one after the other."""
        texts = []
        for pod in self.pods(program):
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pods.name(pod)}:8080/proxy/metrics"
            texts.append(self.kubectl.run("get", "--raw", path))
        return "\n".join(texts)


def _spare_the_slow(rendered: list[dict]) -> None:
    """An operator that a test has stopped, or a busy machine keeps waiting, is not killed for it
    within three minutes: what it does when it wakes is the test."""
    for thing in rendered:
        if thing["kind"] == "Deployment":
            for container in thing["spec"]["template"]["spec"]["containers"]:
                container["livenessProbe"]["failureThreshold"] = 10


def _loaded(program: str) -> Image:
    """The image that `install` put into the nodes."""
    built = (_IMAGES / f"{program}.tar").stat().st_mtime_ns
    return Image(f"localhost/cachewarm-{program}:dev", pull_policy="Never", version=str(built))
