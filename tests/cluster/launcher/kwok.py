# SPDX-License-Identifier: Apache-2.0
"""Fake nodes fake-0001... whose pods are only said to run: for scale, never for bytes."""

import json

from . import control_plane
from .process import Daemon, run
from .progress import Progress, wait_until
from .settings import ClusterError, Settings

LIMIT = 10000
_POOLS = 4  # the label "pool" of the nodes is pool-0 to pool-3, in turns
_NODES_PER_SECOND = 20  # that at least get Ready
# A node renews its lease four times in its duration; all of them together so often.
_RENEWALS_PER_SECOND = 40
_LEASE_SECONDS_MIN = 40
_CAPACITY = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}


def _daemon(settings: Settings) -> Daemon:
    return Daemon(settings.state, "kwok")


def up(settings: Settings, count: int, progress: Progress) -> None:
    if not 1 <= count <= LIMIT:
        raise ClusterError(f"kwok nodes {count}: expected 1 to {LIMIT}")
    since = progress.now()
    nodes = {"apiVersion": "v1", "kind": "List", "items": [_node(i + 1) for i in range(count)]}
    apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    control_plane.kubectl(settings, *apply, text_in=json.dumps(nodes))
    stages = settings.state / "kwok-stages.yaml"
    stages.write_text(run(settings.kubebox, "kwok-stages").stdout)
    daemon = _daemon(settings)
    lease = max(_LEASE_SECONDS_MIN, 4 * count // _RENEWALS_PER_SECOND)
    daemon.start(
        *(settings.kubebox, "kwok", f"--config={stages}", f"--kubeconfig={settings.kubeconfig}"),
        f"--node-lease-duration-seconds={lease}",
        *("--cidr=10.245.0.0/16", "--manage-all-nodes=false"),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--server-address=127.0.0.1:10247",
    )

    def ready() -> bool:
        daemon.require_alive()
        listed = control_plane.kubectl(settings, "get", "node", "-l", "type=kwok", "--no-headers")
        return sum(" Ready" in line for line in listed.splitlines()) >= count

    seconds = 60 + count / _NODES_PER_SECOND
    wait_until(ready, seconds, lambda: f"kwok nodes are not Ready; {daemon.tail()}")
    progress.done(f"{count} kwok nodes Ready", since)


def down(settings: Settings) -> None:
    _daemon(settings).kill()


def remove_nodes(settings: Settings) -> None:
    control_plane.kubectl(settings, "delete", "node", "-l", "type=kwok", "--ignore-not-found")


def _node(number: int) -> dict:
    name = f"fake-{number:04d}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "type": "kwok",
                "pool": f"pool-{number % _POOLS}",
            },
        },
        "spec": {
            "taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]
        },
        "status": {"allocatable": _CAPACITY, "capacity": _CAPACITY},
    }
