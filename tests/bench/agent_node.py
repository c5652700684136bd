# SPDX-License-Identifier: Apache-2.0
"""The agent itself on a node without Kubernetes: the program of the image, beside the API server of
the tests, which serves its NodeCache."""
import contextlib
import json
import re
import time
import urllib.request
from pathlib import Path

from processes import OUTPUT_CHARACTERS, CommandFailed, Server

NODE_CACHES = "/apis/cachewarm.io/v1alpha1/nodecaches"
NODE = "bench"
KEY = 64 * "0"
POLL_SECONDS = 0.05
DISK_LIMIT = 1 << 40


def node_cache(namespace, name, digest, size):
    """Returns a NodeCache that wants one bundle."""
    return {"apiVersion": "cachewarm.io/v1alpha1", "kind": "NodeCache", "metadata": {"name": NODE},
            "spec": {"warmups": [{"uid": "bench", "namespace": namespace, "name": name,
                                  "runAs": ["image"], "bundles": [
                                      {"key": KEY, "digest": digest, "bytes": size}]}]}}


def bundle_in(status, digest):
    """Returns what a NodeCache's status has on the bundle; {} if nothing."""
    return next((bundle for warmup in status.get("warmups", [])
                 for bundle in warmup.get("bundles", []) if bundle["digest"] == digest), {})


class AgentNode:
    """An agent that runs, and its API server."""

    def __init__(self, agent, url, root):
        self.agent, self.url, self.root = agent, url, root

    def request(self, method, path, body=None):
        """Sends one request to the API server. Returns the object that it answers with."""
        kind = "merge-patch+json" if method == "PATCH" else "json"
        request = urllib.request.Request(
            self.url + path, method=method, data=body and json.dumps(body).encode(),
            headers={"Content-Type": f"application/{kind}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def want(self, namespace, name, digest, size):
        """Requests a bundle instead of the one before, as the operator does."""
        wanted = node_cache(namespace, name, digest, size)
        if any(item["metadata"]["name"] == NODE
               for item in self.request("GET", NODE_CACHES)["items"]):
            self.request("PATCH", f"{NODE_CACHES}/{NODE}", {"spec": wanted["spec"]})
        else:
            self.request("POST", NODE_CACHES, wanted)

    def await_active(self, digest, seconds):
        """Waits until the agent reports the bundle active."""
        deadline = time.monotonic() + seconds
        while True:
            status = self.request("GET", f"{NODE_CACHES}/{NODE}").get("status", {})
            found = bundle_in(status, digest)
            if found.get("state") == "Active":
                return
            if (found.get("state") == "Failed" or time.monotonic() > deadline
                    or self.agent.process.poll() is not None):
                raise CommandFailed(f"agent: {digest} is not active: {found or status}\n"
                                    f"{Path(self.agent.log).read_text()[-OUTPUT_CHARACTERS:]}")
            time.sleep(POLL_SECONDS)

    def tree(self):
        """Returns the tree of the mount."""
        return next(self.root.glob("*/*/bench/image")).resolve()

    def await_durable(self, seconds):
        """Waits until the active tree has its durable mark, at most `seconds`."""
        mark = self.root / f".state/generations/{self.tree().name}.durable"
        deadline = time.monotonic() + seconds
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)


def url_of(kubeconfig):
    """Returns the address in a kubeconfig file, None until the file is complete."""
    text = kubeconfig.read_text() if kubeconfig.exists() else ""
    found = re.search(r'server: "([^"]+)"', text)
    return found.group(1) if found and "users:" in text else None


@contextlib.contextmanager
def running(programs, folder, store):
    """Yields an AgentNode with an empty root below `folder`, which its own files are in, too."""
    kubeconfig, root = folder / "kubeconfig", folder / "root"
    root.mkdir()
    with Server([str(programs.api_server), str(kubeconfig)], folder / "api-server.log",
                lambda: url_of(kubeconfig) is not None):
        command = [str(programs.agent), "--kubeconfig", str(kubeconfig), f"--node-name={NODE}",
                   "--root", str(root), "--store", store, "--listen=127.0.0.1:0",
                   f"--byte-limit={DISK_LIMIT}", "--reserve-bytes-percent=0",
                   "--reserve-inodes-percent=0"]
        with Server(command, folder / "agent.log", lambda: True) as agent:
            yield AgentNode(agent, url_of(kubeconfig), root)
