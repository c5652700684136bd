# SPDX-License-Identifier: Apache-2.0
"""Where everything lives: directories, programs, addresses. Nothing here touches the machine."""

import os
from dataclasses import dataclass
from pathlib import Path

BRIDGE = "cwbr0"
BRIDGE_ADDRESS = "10.100.0.1"
SERVICE_CIDR = "10.96.0.0/16"
SERVICE_ADDRESS = (
    "10.96.0.1"  # the Service "kubernetes": an address of the bridge, so no kube-proxy
)
API_PORT = 443
ETCD_PORT = 12379
ETCD_PEER_PORT = 12380
REGISTRY_PORT = 5000  # plain http, straight
REGISTRY_PROXY_PORT = 5001  # plain http, through the throttling proxy
REGISTRY_TLS_PORT = 5443  # https by the cluster's CA, through the throttling proxy
REGISTRY_NAME = "registry.test"  # the host part of image names; containerd maps it to the proxy
CGROUP = "cachewarm-test"
NODE_LETTERS = "abcdefghi"
DEFAULT_NODES = ("node-a", "node-b", "node-c")
API_SERVER = f"https://{BRIDGE_ADDRESS}:{API_PORT}"


class ClusterError(Exception):
    """One line for a person: the failure and its remedy."""


def node_index(name: str) -> int:
    """node-a is 1 ... node-i is 9; the index is part of every address of the node."""
    if len(name) == 6 and name.startswith("node-") and name[5] in NODE_LETTERS:
        return NODE_LETTERS.index(name[5]) + 1
    raise ClusterError(f"node name {name!r}: expected node-a to node-{NODE_LETTERS[-1]}")


def node_address(index: int) -> str:
    return f"10.100.0.{10 + index}"


def pod_subnet(index: int) -> str:
    return f"10.244.{index}.0/24"


@dataclass(frozen=True)
class Settings:
    state: Path  # owned by one cluster; removed by `down`
    cache: Path  # owned by tools/setup; only read here
    kubernetes: str  # "1.36", or "1.34" for one without admission policies
    # In a network namespace of its own, so that several clusters run side by side.
    apart: bool
    # A lost node shows NotReady after about this long; kubelets renew their lease every 3 s.
    node_grace_seconds: int
    # The requests that the API server logs: "accounts", those of the service accounts of
    # cachewarm, or "objects", also all changes of the pods, nodes, Jobs and NodeCaches.
    audit: str

    @staticmethod
    def load(environ=os.environ) -> "Settings":
        audit = environ.get("CACHEWARM_AUDIT") or "accounts"
        if audit not in ("accounts", "objects"):
            raise ClusterError(f"CACHEWARM_AUDIT={audit!r}: expected accounts or objects")
        home_cache = Path(environ.get("HOME", "/root")) / ".cache" / "cachewarm"
        return Settings(
            state=Path(environ.get("CACHEWARM_CLUSTER") or "/tmp/cachewarm-cluster").absolute(),
            cache=Path(environ.get("CACHEWARM_CACHE") or home_cache).absolute(),
            kubernetes=environ.get("CACHEWARM_KUBERNETES") or "1.36",
            apart=environ.get("CACHEWARM_CLUSTER_APART") == "1",
            node_grace_seconds=int(environ.get("CACHEWARM_NODE_GRACE_SECONDS") or 20),
            audit=audit,
        )

    def artifact(self, name: str) -> Path:
        path = (self.cache / name / "current").resolve()
        if not (path / ".complete").exists():
            raise ClusterError(f"{name} is not in {self.cache}: run tools/setup/cluster-programs")
        return path

    @property
    def kubebox_dir(self) -> Path:
        current = self.kubernetes == "1.36"
        return self.artifact("kubebox" if current else f"kubebox-{self.kubernetes}")

    @property
    def kubebox(self) -> Path:
        return self.kubebox_dir / "kubebox"

    @property
    def kubectl(self) -> Path:
        return self.kubebox_dir / "kubectl"

    @property
    def containerd_dir(self) -> Path:
        return self.artifact("containerd")

    @property
    def debs(self) -> Path:
        return self.artifact("debs")

    @property
    def base_images(self) -> Path:
        return self.artifact("images")

    @property
    def cgroup(self) -> str:
        return f"{CGROUP}-{self.state.name}" if self.apart else CGROUP

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def kubeconfig(self) -> Path:
        return self.state / "admin.kubeconfig"

    @property
    def images(self) -> Path:
        return self.state / "images"

    def node(self, name: str) -> Path:
        return self.state / "nodes" / name

    def node_names(self) -> list[str]:
        nodes = self.state / "nodes"
        return sorted(p.name for p in nodes.iterdir()) if nodes.is_dir() else []
