# SPDX-License-Identifier: Apache-2.0
"""A separate registry and containerd for the bench, on free addresses and in separate folders."""
import http.client
import json
import os
import socket

from corpora import CACHE
from processes import CommandFailed, Server, quiet

PROGRAMS = CACHE / "containerd/current"
REGISTRY = CACHE / "debs/current/docker-registry/usr/bin/docker-registry"


def free_port():
    """Returns a free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serves(port):
    """Returns True if a registry answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v2/")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


class Registry(Server):
    """A registry over a folder, without TLS: distribution 2.8, or a program that takes its
    configuration."""

    def __init__(self, folder, program=REGISTRY):
        folder.mkdir(parents=True)
        self.port = free_port()
        settings = {"version": 0.1, "log": {"level": "error", "accesslog": {"disabled": True}},
                    "storage": {"filesystem": {"rootdirectory": str(folder / "content")},
                                "delete": {"enabled": True}},
                    "http": {"addr": f"127.0.0.1:{self.port}"}}
        (folder / "config.yml").write_text(json.dumps(settings))  # JSON is YAML
        super().__init__([str(program), "serve", str(folder / "config.yml")],
                         folder / "log", lambda: serves(self.port))

    @property
    def host(self):
        """As in an image's name."""
        return f"127.0.0.1:{self.port}"


class Containerd(Server):
    """containerd that pulls and unpacks with the overlayfs snapshotter. Its socket is in `short`,
    because the path of a socket has at most 107 bytes."""

    def __init__(self, folder, short):
        folder.mkdir(parents=True)
        self.socket = short / "sock"
        plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime",
                   "io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri",
                   "io.containerd.internal.v1.opt"]
        (folder / "config.toml").write_text(
            f"version = 3\nroot = '{folder}/root'\nstate = '{short}/state'\n"
            f"temp = '{folder}/temp'\ndisabled_plugins = {plugins}\n"
            f"[grpc]\naddress = '{self.socket}'\n[ttrpc]\naddress = '{self.socket}.ttrpc'\n"
            "[plugins.'io.containerd.shim.v1.manager']\nenv = []\n")
        super().__init__([str(PROGRAMS / "containerd"), "--config", str(folder / "config.toml")],
                         folder / "log", self.answers)

    def answers(self):
        """Returns True if its socket answers."""
        if not os.path.exists(self.socket):
            return False
        try:
            self.ctr("version")
            return True
        except CommandFailed:
            return False

    def pull_command(self, image):
        """Pulls and unpacks."""
        return [str(PROGRAMS / "ctr"), "--address", str(self.socket), "images", "pull",
                "--plain-http", image]

    def ctr(self, *words):
        """Runs ctr against it."""
        return quiet(PROGRAMS / "ctr", "--address", self.socket, *words)

    def forget(self, image):
        """Removes image, content and snapshots, and waits for that."""
        if image in self.ctr("images", "list", "--quiet").split():
            self.ctr("images", "remove", "--sync", image)
        self.ctr("content", "prune", "references")
