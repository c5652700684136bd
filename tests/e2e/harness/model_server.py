# SPDX-License-Identifier: Apache-2.0
"""Kubernetes objects that run tests/workload/model_server.py from localhost/cachewarm-workload.

The image holds links and the script; the machine's /usr and the torch environment come in as
read-only host paths. Without cachewarm a start is always cold.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from .workload import Workload, apart, on_nodes

CONTAINER = "server"
# The program of a "medium" model: the first three of the seven blocks of "large", five layers each.
_MEDIUM = """
import sys
sys.path.insert(0, "/opt/model")
import model_server
build = model_server.build_model
model_server.build_model = lambda torch, size: build(torch, size)[:15]
model_server.main()
"""
FACTS_DIRECTORY = "/etc/cachewarm-test"  # another directory on every node
PORT = 8080


def _cache() -> Path:
    return Path(os.environ.get("CACHEWARM_CACHE") or Path.home() / ".cache" / "cachewarm")


def torch_directory() -> str:
    return str((_cache() / "torch" / "current").resolve())


def redis_client_directory() -> str:
    """A directory for PYTHONPATH with the package redis."""
    return str((_cache() / "redis-client" / "current" / "site").resolve())


@dataclass
class ModelServer(Workload):
    """The knobs of one workload; every builder below makes fresh objects from them."""

    name: str = "model"
    replicas: int = 1
    size: str = "small"  # or "medium", "large"
    revision: int = 1
    env: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()
    one_per_node: bool = False
    run_as: int | None = None
    shown: dict[str, str] = field(default_factory=dict)  # directories of the machine, by volume
    spec: dict = field(default_factory=dict)  # merged over the pod spec, last
    strategy: dict | None = None

    @property
    def image(self) -> str:
        return f"localhost/cachewarm-workload:{self.revision}"

    def pod_labels(self) -> dict[str, str]:
        return {**self.selector, **self.labels}

    def container(self) -> dict:
        built = "large" if self.size == "medium" else self.size
        settings = {"HOME": "/tmp", "OMP_NUM_THREADS": "2", "MODEL_SIZE": built, **self.env}
        program = ["-c", _MEDIUM] if self.size == "medium" else ["/opt/model/model_server.py"]
        mounts = [
            ("usr", "/usr", True),
            ("torch", torch_directory(), True),
            ("tmp", "/tmp", False),
        ]
        mounts.append(("facts", FACTS_DIRECTORY, True))
        mounts += [(name, path, True) for name, path in self.shown.items()]
        return {
            "name": CONTAINER,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [f"{torch_directory()}/bin/python", *program],
            "env": [{"name": name, "value": value} for name, value in settings.items()],
            "ports": [{"containerPort": PORT}],
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": PORT}, "periodSeconds": 1},
            "volumeMounts": [
                {"name": name, "mountPath": path, "readOnly": read_only}
                for name, path, read_only in mounts
            ],
        }

    def pod_spec(self) -> dict:
        spec: dict = {
            "terminationGracePeriodSeconds": 0,
            "dnsPolicy": "Default",
            "containers": [self.container()],
            "volumes": [
                {"name": "usr", "hostPath": {"path": "/usr"}},
                {"name": "torch", "hostPath": {"path": torch_directory()}},
                {"name": "tmp", "emptyDir": {}},
                {"name": "facts", "hostPath": {"path": FACTS_DIRECTORY, "type": "Directory"}},
                *({"name": name, "hostPath": {"path": path}} for name, path in self.shown.items()),
            ],
        }
        affinity = {}
        if self.nodes:
            affinity["nodeAffinity"] = on_nodes(self.nodes)
        if self.one_per_node:
            affinity["podAntiAffinity"] = apart(self.selector)
        if affinity:
            spec["affinity"] = affinity
        if self.run_as is not None:
            spec["securityContext"] = {"runAsUser": self.run_as, "runAsGroup": self.run_as}
        return {**spec, **self.spec}

    def job(self) -> dict:
        thing = super().job()
        env = thing["spec"]["template"]["spec"]["containers"][0]["env"]
        env.append({"name": "MODEL_EXIT", "value": "1"})
        return thing
