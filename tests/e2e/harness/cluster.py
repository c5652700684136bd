# SPDX-License-Identifier: Apache-2.0
"""The verbs of tests/cluster/cluster, for tests."""

import os
import subprocess
from pathlib import Path

from . import registry
from .kubectl import Kubectl

REPOSITORY = Path(__file__).resolve().parents[3]
_PROGRAM = REPOSITORY / "tests" / "cluster" / "cluster"
NODES = ("node-a", "node-b", "node-c")
REGISTRY = "10.100.0.1:5000"
THROTTLED_REGISTRY = "10.100.0.1:5001"


class Cluster:
    """The built-in cluster. A verb that fails raises with the verb's own message."""

    def __init__(self) -> None:
        self.state = Path(os.environ.get("CACHEWARM_CLUSTER") or "/tmp/cachewarm-cluster")

    def verb(self, *words: str, seconds: float = 300) -> str:
        done = subprocess.run([_PROGRAM, *words], capture_output=True, text=True, timeout=seconds)
        if done.returncode != 0:
            raise AssertionError(f"cluster {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def kubectl(self) -> Kubectl:
        program = _cache() / "kubebox" / "current" / "kubectl"
        return Kubectl(str(program), str(self.state / "admin.kubeconfig"))

    def up(self, *nodes: str) -> None:
        self.verb("up", *nodes)

    def in_node(self, node: str, *command: str) -> str:
        return self.verb("in-node", node, *command)

    def write_in_node(self, node: str, path: str, content: str) -> None:
        """A small file on the node's own disk, written at once or not at all."""
        script = 'mkdir -p "${1%/*}" && printf %s "$2" >"$1.new" && mv "$1.new" "$1"'
        self.in_node(node, "sh", "-c", script, "sh", path, content)

    def remove_in_node(self, node: str, *paths: str) -> None:
        self.in_node(node, "rm", "-rf", *paths)

    def base_image(self, name: str) -> Path:
        return _cache() / "images" / "current" / f"{name}.tar"

    def push(self, archive: Path, repository: str, tag: str) -> str:
        """Puts an OCI tar into the registry; returns the reference that pods pull it by."""
        registry.push(archive, f"http://{REGISTRY}", repository, tag)
        return f"registry.test/{repository}:{tag}"

    def largest_layer(self, repository: str, tag: str) -> dict:
        manifest = registry.manifest(f"http://{REGISTRY}", repository, tag)
        return max(manifest["layers"], key=lambda layer: layer["size"])


def _cache() -> Path:
    return Path(os.environ.get("CACHEWARM_CACHE") or Path.home() / ".cache" / "cachewarm")
