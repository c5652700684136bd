# SPDX-License-Identifier: Apache-2.0
"""Workloads of real engines beside torch: tests/workload/{vllm,jax,numba}_server.py in the
environments that tools/setup/engines-venv (vLLM) and jit-venv (JAX, Numba) install. Like the model
server they run from localhost/cachewarm-workload with the machine's /usr and the environment as
read-only host paths."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from . import pods
from .kubectl import Kubectl
from .sleeper import Sleeper
from .waiting import wait_for
from .warmup import Warmup, start_note

PORT = 8080
_INIT = re.compile(r"init engine .* took ([0-9.]+) s")


def environment(engine: str) -> str:
    cache = Path(os.environ.get("CACHEWARM_CACHE") or Path.home() / ".cache" / "cachewarm")
    return str((cache / ("engines" if engine == "vllm" else "jit") / "current").resolve())


def engine_server(name: str, engine: str, nodes: tuple[str, ...]) -> Sleeper:
    """A Deployment without replicas, with at most one pod on each of the nodes. `engine` is vllm,
    jax or numba."""
    installed = environment(engine)
    volumes = {
        "usr": {"hostPath": {"path": "/usr"}},
        "engines": {"hostPath": {"path": installed}},
        "tmp": {"emptyDir": {}},
        "shm": {"emptyDir": {"medium": "Memory"}},
    }
    mounts = [("usr", "/usr"), ("engines", installed), ("tmp", "/tmp")]
    arguments = ["--port", str(PORT)] if engine == "vllm" else []
    path = "/health" if engine == "vllm" else "/readyz"
    settings = {"HOME": "/tmp", "OMP_NUM_THREADS": "2", "PORT": str(PORT)}
    container = {
        "image": "localhost/cachewarm-workload:1",
        "imagePullPolicy": "IfNotPresent",
        "command": [f"{installed}/bin/python", f"/opt/model/{engine}_server.py", *arguments],
        "env": [{"name": key, "value": value} for key, value in settings.items()],
        "readinessProbe": {"httpGet": {"path": path, "port": PORT}, "periodSeconds": 1},
        "volumeMounts": [
            *({"name": key, "mountPath": at, "readOnly": key != "tmp"} for key, at in mounts),
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    spec = {
        "dnsPolicy": "Default",
        "volumes": [{"name": key, **source} for key, source in volumes.items()],
    }
    return Sleeper(
        name=name, replicas=0, nodes=nodes, one_per_node=True, container=container, spec=spec
    )


@dataclass
class BuilderLogs:
    """The last log of every pod of a builder Job, read while the pods exist."""

    warmup: Warmup
    texts: dict[str, str] = field(default_factory=dict)  # by pod

    def wait_bundles(self, count: int, seconds: float) -> list[dict]:
        def published() -> list[dict]:
            for pod in self.warmup.job_pods():
                text = self.warmup.kubectl.logs(pods.name(pod))
                self.texts[pods.name(pod)] = max(text, self.texts.get(pods.name(pod), ""), key=len)
            return self.warmup.bundles if len(self.warmup.bundles) >= count else []

        what = f"{count} bundles of {self.warmup.name}"
        return wait_for(what, published, seconds, self.warmup.kubectl)


@dataclass(frozen=True)
class Counted:
    """Counters of an engine after its start, from the READY line of the JAX and Numba servers."""

    hits: int
    misses: int
    seconds: float  # of imports and compiles


def counted(log: str) -> Counted | None:
    """None while the log has no READY line."""
    line = next((each for each in log.splitlines() if each.startswith("READY ")), None)
    if line is None:
        return None
    words = dict(word.split("=", 1) for word in line.split()[1:])
    return Counted(int(words["hits"]), int(words["misses"]), float(words["compile_s"]))


def init_seconds(log: str) -> float | None:
    """How long vLLM took to profile, compile and warm up its model; None while it has not."""
    found = _INIT.search(log)
    return float(found.group(1)) if found else None


def wait_log(kubectl: Kubectl, pod: dict, parse) -> object:
    """Waits until `parse` finds a value in the log of a pod that is Ready; returns that value."""
    name = pods.name(pod)
    return wait_for(f"the log of {name}", lambda: parse(kubectl.logs(name)), 120, kubectl)


def wait_result(kubectl: Kubectl, pod: dict) -> str:
    """How cachewarm classified the start of a pod."""
    name = pods.name(pod)
    note = wait_for(
        f"{name} is counted", lambda: start_note(kubectl.get("pod", name)), 180, kubectl
    )
    return note["result"]
