# SPDX-License-Identifier: Apache-2.0
"""The targets of the chaos: one warmup of each way to be built, held and compiled, and the state
that each of them has to reach at the end."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from .. import pods
from ..cluster import NODES, Cluster
from ..kubectl import Kubectl
from ..model_server import ModelServer
from ..product import Product
from ..waiting import wait_for
from ..warmup import Warmup, gated, make_warmup, warmup_for
from . import excuses as scopes
from .excuses import Excuses
from .judge import OF_KEY
from .judge import seconds as moment

LONGEST_HOLD = 30  # seconds; no warmup here ever allows more
# Kubelet restarts a container twice, with pauses, before its exits suspend the injection.
SUSPENDED_SECONDS = 60.0
IMAGES = tuple(f"r{number}" for number in range(1, 5))
REPOSITORY = "chaos/server"
CONTAINER = "server"
PORT = 8080
# Four seconds of work that a file saves; what it is named by is all that its result depends on.
_SERVER = f"""
mkdir -p "${{MY_CACHE:=/tmp/mine}}"
entry="$MY_CACHE/kernels-$FLAVOUR"
if [ -s "$entry" ]; then cat "$entry" >/dev/null
else sleep 4; echo "kernels of $FLAVOUR" >"$entry.part"; mv "$entry.part" "$entry"
fi
exec httpd -f -p {PORT} -h /tmp
"""
_CACHES = [{"name": "mine", "env": "MY_CACHE", "path": "mine"}]
_ENDED = ("Succeeded", "Failed")
_COMPILE = {"settleSeconds": 2, "backoffLimit": 10, "timeoutSeconds": 60, "pendingSeconds": 30}


@dataclass
class LightServer:
    """Compiles with a sleep, so that many of them fit on two cores."""

    name: str
    replicas: int

    def template(self, image: str = IMAGES[0]) -> dict:
        container = {
            "name": CONTAINER,
            "image": f"registry.test/{REPOSITORY}:{image}",
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", _SERVER],
            "env": [{"name": "FLAVOUR", "value": "0"}],
            "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        }
        spec = {"terminationGracePeriodSeconds": 0, "containers": [container], **_spread(self.name)}
        return {"metadata": {"labels": {"app": self.name}}, "spec": spec}

    def deployment(self) -> dict:
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": {"app": self.name}},
                "template": self.template(),
            },
        }


def _spread(app: str) -> dict:
    """On every node, so that every GPU type gets its builder and is warm in the end."""
    constraint = {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
        "matchLabelKeys": ["pod-template-hash"],
    }
    return {"topologySpreadConstraints": [constraint]}


@dataclass
class Workload:
    """One warmup and, unless it is of a bare template, its Deployment; both as they end."""

    desired: dict
    deployment: dict | None = None
    images: tuple[str, ...] = ()  # that its template may be changed to

    @property
    def name(self) -> str:
        return self.desired["metadata"]["name"]

    @property
    def replicas(self) -> int:
        return self.deployment["spec"]["replicas"] if self.deployment else 0


def workloads() -> list[Workload]:
    light = tuple(f"registry.test/{REPOSITORY}:{image}" for image in IMAGES)
    held, weighed = LightServer("held", 5).deployment(), LightServer("weighed", 3).deployment()
    torch = ModelServer(name="torch", replicas=3, spec=_spread("torch")).deployment()
    by_job = LightServer("by-job", 0)
    template = by_job.template()
    del template["spec"]["topologySpreadConstraints"]
    first_pod = {**_COMPILE, "builder": "FirstPod"}
    hold = {"mode": "Hold", "maxHoldSeconds": 20}
    auto = {"mode": "Auto", "maxHoldSeconds": LONGEST_HOLD}
    return [
        Workload(warmup_for(held, caches=_CACHES, compile=first_pod, gate=hold), held, light),
        Workload(warmup_for(weighed, caches=_CACHES, compile=first_pod, gate=auto), weighed, light),
        Workload(
            warmup_for(torch, compile={**first_pod, "timeoutSeconds": 300}, gate=hold),
            torch,
            tuple(ModelServer(revision=number).image for number in (1, 2)),
        ),
        Workload(
            make_warmup("by-job", template=template, caches=_CACHES, compile={**_COMPILE}),
            images=light,
        ),
    ]


@dataclass
class Tenant:
    """Another namespace with one workload. Nothing is done to it but that its webhook hangs."""

    kubectl: Kubectl
    workload: Workload

    @staticmethod
    def beside(kubectl: Kubectl) -> "Tenant":
        light = LightServer("tenant", 2).deployment()
        first_pod = {**_COMPILE, "builder": "FirstPod"}
        hold = {"mode": "Hold", "maxHoldSeconds": 20}
        desired = warmup_for(light, caches=_CACHES, compile=first_pod, gate=hold)
        return Tenant(kubectl.within(f"{kubectl.namespace}-tenant"), Workload(desired, light))

    def set_up(self) -> None:
        metadata = {"name": self.kubectl.namespace}
        self.kubectl.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        wait_for(
            "default ServiceAccount", lambda: self.kubectl.get("serviceaccount", "default"), 30
        )
        self.kubectl.apply(self.workload.desired, self.workload.deployment)

    def tear_down(self) -> None:
        self.kubectl.delete("namespace", self.kubectl.namespace, "--wait=false")


@dataclass
class Scene:
    """Thread-safe as far as kubectl is; `off` are the nodes without power, its owner is Outages."""

    cluster: Cluster
    product: Product
    kubectl: Kubectl
    workloads: list[Workload] = field(default_factory=workloads)
    off: set[str] = field(default_factory=set)
    operators: threading.Lock = field(default_factory=threading.Lock)
    # One verb that waits for the API server or takes it away at a time.
    power: threading.Lock = field(default_factory=threading.Lock)
    excuses: Excuses = field(default_factory=Excuses)

    @cached_property
    def tenant(self) -> Tenant:
        return Tenant.beside(self.kubectl)

    def set_up(self) -> None:
        for image in IMAGES:
            self.cluster.push(self.cluster.base_image("busybox"), REPOSITORY, image)
        for workload in self.deployed_workloads:
            empty = {**workload.deployment["spec"], "replicas": 0}
            self.kubectl.apply({**workload.deployment, "spec": empty})
        self.tenant.set_up()
        self.put_right()
        self.wait_converged(240)

    def put_right(self) -> None:
        """Restores the final state: every node's facts and every warmup as they were, every
        Deployment at its size. The tenant stays as it is.
        Images stay as the chaos left them. Pods that were made while their warmup was deleted, or
        paused, run without it until somebody restarts them: that is done here."""
        self.product.declare_all(self.product.facts)
        for workload in self.workloads:
            self.kubectl.apply(workload.desired)
        for workload in self.deployed_workloads:
            if not self.kubectl.get("deployment", workload.name):
                self.kubectl.apply(workload.deployment)
            warmup = Warmup(self.kubectl, workload.name)
            self.resume(warmup)
            warmup.wait_injecting(120)
            self.kubectl.scale("deployment", workload.name, workload.replicas)
            found, uid = self.workload_pods(workload), warmup.uid
            if any(uid not in _mounted(pod) for pod in found):
                self.kubectl.run("rollout", "restart", f"deployment/{workload.name}")
        self._remove_orphans()

    def resume(self, warmup: Warmup) -> None:
        """Restarts the rollout if the injection is suspended and all nodes of the failed pods had
        a full disk shortly before: cachewarm resumes only with a changed template. Any other
        suspension stays, because the chaos did not cause it."""
        found = warmup.status.get("suspension") or {}
        nodes = [each["name"] for each in found.get("nodes", [])]
        if not nodes or "resumedTime" in found:
            return
        at = moment(found["suspendedTime"])
        if all(self.excuses.touches(scopes.node(each), at - SUSPENDED_SECONDS, at)
               for each in nodes):
            self.kubectl.run("rollout", "restart", f"deployment/{warmup.name}")

    def _remove_orphans(self) -> None:
        """Of a Deployment that was deleted and made again while the API server restarted, the
        garbage collector of Kubernetes sees only a change: the ReplicaSets of the first one stay,
        and with them their pods, until somebody deletes them."""
        found = self.kubectl.list("replicasets")
        there = {thing["metadata"]["uid"] for thing in self.kubectl.list("deployments")}
        for thing in found:
            if there.isdisjoint(owner["uid"] for owner in thing["metadata"]["ownerReferences"]):
                self.kubectl.delete("replicaset", pods.name(thing))

    @property
    def deployed_workloads(self) -> list[Workload]:
        return [workload for workload in self.workloads if workload.deployment]

    def another_operator_lives(self, but: str = "", off: str = "") -> bool:
        """One that is Ready, besides the pod `but`, and not on the node `off`. Hold `operators`
        from the question to the action."""
        return any(
            pods.ready(pod) and pods.name(pod) != but and pods.node(pod) not in {*self.off, off}
            for pod in self.product.pods("operator")
        )

    def within_reach(self, pod: dict) -> bool:
        """Whether its processes can be killed: it is on a node, and that has power."""
        return bool(pods.node(pod)) and pods.node(pod) not in self.off

    def pods(self) -> list[dict]:
        return [pod for pod in self.kubectl.list("pods") if not pods.deleted(pod)]

    def workload_pods(self, workload: Workload) -> list[dict]:
        app = workload.name
        found = [pod for pod in self.pods() if pod["metadata"]["labels"].get("app") == app]
        return [p for p in found if "cachewarm.io/builder-key" not in p["metadata"]["labels"]]

    def builder_pods(self) -> list[dict]:
        """Pods of Jobs by their label; first pods by the status of the warmups."""
        elected = set()
        for thing in self.kubectl.list("cachewarmups"):
            for builder in thing.get("status", {}).get("builders", []):
                if builder.get("state") not in ("Captured", "Failed"):
                    elected.add(builder.get("podUID", ""))
        return [
            pod
            for pod in self.pods()
            if pod["metadata"]["uid"] in elected
            or "cachewarm.io/builder-key" in pod["metadata"]["labels"]
        ]

    def unstarted(self) -> list[str]:
        """Describes each pod that is held, or that its kubelet does not report as Ready or ended,
        and each node without a Ready kubelet; empty if there is none. Pods of builder Jobs are
        never Ready. Asks nothing of cachewarm, and expects no state that the chaos has changed."""
        out = [f"{pods.name(node)} is not Ready"
               for node in self.kubectl.list("nodes") if not pods.ready(node)]
        for kubectl in (self.kubectl, self.tenant.kubectl):
            found = kubectl.list("pods")
            for pod in [p for p in found if OF_KEY not in p["metadata"].get("labels", {})]:
                if pods.deleted(pod):
                    out.append(f"{pods.name(pod)} is being deleted")
                elif gated(pod):
                    out.append(f"{pods.name(pod)} is held")
                elif not pods.ready(pod) and pod["status"]["phase"] not in _ENDED:
                    out.append(f"{pods.name(pod)} is {pod['status']['phase']} and not Ready")
            for each in kubectl.list("deployments"):
                ready, wanted = each["status"].get("readyReplicas", 0), each["spec"]["replicas"]
                if ready != wanted:
                    out.append(f"{pods.name(each)}: {ready} of {wanted} pods are Ready")
        return out

    def open_points(self) -> list[str]:
        """Describes each object that has not converged; empty if all have."""
        questions: list[Callable[[], list[str]]] = [
            self._held,
            self._not_warm,
            self._jobs_left,
            self._not_ready,
        ]
        return [point for question in questions for point in question()]

    def _held(self) -> list[str]:
        return [f"{pods.name(pod)} is held" for pod in self.kubectl.list("pods") if gated(pod)]

    def _not_warm(self) -> list[str]:
        out = []
        for workload in self.workloads:
            warmup = Warmup(self.kubectl, workload.name)
            for kind, reason in (("Ready", "Injecting"), ("Warm", "Distributed")):
                seen = warmup.condition(kind)
                if (seen.get("status"), seen.get("reason")) != ("True", reason):
                    state = f"{kind}={seen.get('status')} {seen.get('reason')}"
                    out.append(f"{workload.name}: {state}: {seen.get('message')}")
        return out

    def _jobs_left(self) -> list[str]:
        jobs = self.kubectl.list("jobs", "cachewarm.io/builder-warmup")
        return [f"Job {pods.name(job)} is left" for job in jobs]

    def _not_ready(self) -> list[str]:
        out = []
        for workload in self.workloads:
            found = self.workload_pods(workload)
            ready = sum(pods.ready(pod) for pod in found)
            if len(found) != workload.replicas or ready != workload.replicas:
                out.append(f"{workload.name}: {ready} of {len(found)} pods are Ready, "
                           f"{workload.replicas} wanted")
        nodes = {pods.name(node) for node in self.kubectl.list("nodes") if pods.ready(node)}
        out += [f"{node} is not Ready" for node in sorted(set(NODES) - nodes)]
        return out

    def wait_started(self, seconds: float) -> None:
        """Before anything is put right."""
        self._wait_for_none("every pod has started", self.unstarted, seconds)

    def wait_converged(self, seconds: float) -> None:
        self._wait_for_none("everything has converged", self.open_points, seconds)
        self.product.wait_ready(seconds)

    def _wait_for_none(
        self, what: str, question: Callable[[], list[str]], seconds: float
    ) -> None:
        points: list[str] = []

        def none() -> bool:
            points[:] = question()
            return not points

        try:
            wait_for(what, none, seconds, self.kubectl)
        except AssertionError as error:
            raise AssertionError("; ".join(points) + f"\n{error}") from error

    def one(self, chance: random.Random) -> Workload:
        """Seldom the one that really compiles: it takes all of the machine."""
        weights = [1 if workload.name == "torch" else 4 for workload in self.workloads]
        return chance.choices(self.workloads, weights)[0]

    def deployed(self, chance: random.Random) -> Workload:
        while not (workload := self.one(chance)).deployment:
            continue
        return workload


def _mounted(pod: dict) -> str:
    """The path of the warmup's directory on the node; its uid is in it."""
    found = [v for v in pod["spec"].get("volumes", []) if v["name"] == "cachewarm"]
    return found[0].get("hostPath", {}).get("path", "") if found else ""
