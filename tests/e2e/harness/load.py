# SPDX-License-Identifier: Apache-2.0
"""tests/e2e/scale/load: agents of kwok nodes, and clients that work as fast as they can."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from .cluster import REPOSITORY, Cluster
from .installation import NAMESPACE
from .waiting import wait_for

_SOURCE = REPOSITORY / "tests" / "e2e" / "scale" / "load"
KWOK = {"type": "kwok"}
TOLERATIONS = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]


@cache
def program() -> Path:
    """Built once a session; Go has its own cache."""
    go = subprocess.run(
        [REPOSITORY / "tools" / "setup" / "go-toolchain"],
        check=True,
        capture_output=True,
        text=True,
    )
    target = REPOSITORY / "build" / "load"
    target.parent.mkdir(exist_ok=True)
    settings = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    command = [go.stdout.strip(), "build", "-trimpath", "-o", target, "."]
    subprocess.run(command, check=True, cwd=_SOURCE, env=settings)
    return target


class Load:
    def __init__(self, cluster: Cluster, namespace: str):
        keys = cluster.state / "pki"
        server = "jsonpath={.clusters[0].cluster.server}"
        self._flags = [
            f"-server={cluster.kubectl().run('config', 'view', '--minify', '--output', server)}",
            f"-ca={keys}/ca.crt",
            f"-cert={keys}/admin.crt",
            f"-key={keys}/admin.key",
            f"-namespace={namespace}",
        ]

    def start(self, verb: str, *flags: str) -> subprocess.Popen:
        command = [program(), verb, *self._flags, *flags]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=None, text=True)

    def run(self, verb: str, *flags: str, text_in: str = "") -> dict:
        command = [program(), verb, *self._flags, *flags]
        done = subprocess.run(command, input=text_in, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def answer(running: subprocess.Popen) -> dict:
    """The next thing that a verb in the background prints."""
    line = running.stdout.readline()
    assert line, f"load ended with {running.wait()}"
    return json.loads(line)


@contextmanager
def agents(cluster: Cluster, hold: Path) -> Iterator[subprocess.Popen]:
    """Every kwok node has an agent: a pod that is said to run, and somebody who writes its
    NodeCache with a token of that node. While `hold` is there no bundle gets active."""
    kubectl = cluster.kubectl().within(NAMESPACE)
    kubectl.apply(_agent_pods())
    running = Load(cluster, NAMESPACE).start("agents", f"-hold={hold}")
    try:
        yield running
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=30)
        kubectl.delete("daemonset", "kwok-agent", "--wait=false")


def wait_agents(cluster: Cluster, count: int, seconds: float = 120) -> None:
    kubectl = cluster.kubectl().within(NAMESPACE)

    def ready() -> bool:
        status = (kubectl.get("daemonset", "kwok-agent") or {}).get("status", {})
        return status.get("numberReady", 0) >= count

    wait_for(f"{count} agents of kwok nodes", ready, seconds)


def _agent_pods() -> dict:
    labels = {"app.kubernetes.io/component": "agent", "app": "kwok-agent"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "kwok-agent"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": "cachewarm-agent",
                    "nodeSelector": KWOK,
                    "tolerations": TOLERATIONS,
                    "containers": [{"name": "agent", "image": "localhost/pause:1"}],
                },
            },
        },
    }
