# SPDX-License-Identifier: Apache-2.0
"""The verbs of tests/cluster/cluster, for tests."""

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from pathlib import Path

from . import registry
from .kubectl import Kubectl

REPOSITORY = Path(__file__).resolve().parents[3]
_PROGRAM = REPOSITORY / "tests" / "cluster" / "cluster"
# A cluster whose API server has no admission policies: the webhook takes their place.
OLDER = os.environ.get("CACHEWARM_KUBERNETES", "1.36") != "1.36"
MANIFEST = REPOSITORY / "manifests" / ("install-webhook.yaml" if OLDER else "install.yaml")
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
        kubebox = "kubebox-1.34" if OLDER else "kubebox"
        program = _cache() / kubebox / "current" / "kubectl"
        return Kubectl(str(program), str(self.state / "admin.kubeconfig"))

    def helm(self) -> str:
        return str(_cache() / "helm" / "current" / "helm")

    def up(self, *nodes: str) -> None:
        self.verb("up", *nodes)

    def in_node(self, node: str, *command: str) -> str:
        return self.verb("in-node", node, *command)

    def signal_pod(self, pod: dict, signal: str) -> None:
        """To every process of a pod's containers: "KILL", "STOP" ..."""
        script = (
            'for c in /proc/[0-9]*/cgroup; do grep -q "$1" "$c" 2>/dev/null || continue;'
            ' d=${c%/cgroup}; [ "$(cat "$d/comm")" = pause ] || kill -s "$2" "${d#/proc/}"; done;'
            " true"
        )
        node = pod["spec"]["nodeName"]
        self.in_node(node, "bash", "-c", script, "bash", pod["metadata"]["uid"], signal)

    def kill_in_pod(self, pod: dict) -> None:
        """SIGKILL to every process of a pod's containers; kubelet restarts them in the same pod."""
        self.signal_pod(pod, "KILL")

    def on_disk(self, node: str, path: str) -> Path:
        """A path of the node as the machine sees it, also while the node is off. Only below the
        directories that are the node's own: /var/lib/cachewarm, /etc/cachewarm(-test) ..."""
        return self.state / "nodes" / node / "disk" / path.lstrip("/")

    def write_in_node(self, node: str, path: str, content: str) -> None:
        """A small file on the node's own disk, there as a whole or not at all."""
        target = self.on_disk(node, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(target.name + ".new")
        partial.write_text(content)
        partial.rename(target)

    def remove_in_node(self, node: str, path: str) -> None:
        target = self.on_disk(node, path)
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)

    def base_image(self, name: str) -> Path:
        return _cache() / "images" / "current" / f"{name}.tar"

    def another_tag(self, image: str, tag: str) -> str:
        """The same image under another name, in every node: what a rollout changes to."""
        name = f"{image.rpartition(':')[0]}:{tag}"
        for node in NODES:
            self.in_node(node, "ctr", "-n", "k8s.io", "images", "tag", "--force", image, name)
        return name

    def push(self, archive: Path, repository: str, tag: str) -> str:
        """Puts an OCI tar into the registry; returns the reference that pods pull it by."""
        registry.push(archive, f"http://{REGISTRY}", repository, tag)
        return f"registry.test/{repository}:{tag}"

    def push_unseen_image(self) -> str:
        """busybox, 1 MB, with a layer that no node has: a pod's start waits for its pull."""
        tag = uuid.uuid4().hex[:8]
        with tempfile.TemporaryDirectory() as work:
            tree = Path(work) / "bin"
            tree.mkdir()
            shutil.copy(_cache() / "debs/current/busybox-static/bin/busybox", tree)
            for applet in ("sh", "head", "mv", "sleep", "test", "touch"):
                (tree / applet).symlink_to("busybox")
            (tree / tag).touch()
            archive = Path(work) / "image.tar"
            words = (f"localhost/unseen:{tag}", archive, "--entrypoint", "/bin/sh", f"{tree}=/bin")
            subprocess.run([REPOSITORY / "images" / "make-oci-tar", *words, "=/tmp"], check=True)
            return self.push(archive, "unseen", tag)

    def registry_is_free(self) -> bool:
        """It answers, its proxy listens, and no download is throttled."""
        rate = self.state / "registry-rate"
        if not rate.exists() or rate.read_text() != "unlimited":
            return False
        try:
            registry.check(f"http://{REGISTRY}")
            host, _, port = THROTTLED_REGISTRY.partition(":")
            socket.create_connection((host, int(port)), timeout=2).close()
        except OSError:
            return False
        return True

    def largest_layer(self, repository: str, tag: str) -> dict:
        manifest = registry.manifest(f"http://{REGISTRY}", repository, tag)
        return max(manifest["layers"], key=lambda layer: layer["size"])


def _cache() -> Path:
    return Path(os.environ.get("CACHEWARM_CACHE") or Path.home() / ".cache" / "cachewarm")
