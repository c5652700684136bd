# SPDX-License-Identifier: Apache-2.0
"""Finds things that a cluster left behind on the machine. Removes nothing."""

import json
import os
from pathlib import Path

from . import network
from . import settings as names
from .nodes import cgroups
from .process import run, start_time
from .settings import Settings


def leftovers(settings: Settings) -> list[str]:
    return [
        *_processes(settings),
        *_mounts(settings),
        *(f"cgroup {group}" for group in cgroups.groups(settings)),
        *([] if settings.apart else _links()),
        *([] if settings.apart else _routes()),
        *([f"directory {settings.state}"] if settings.state.exists() else []),
    ]


def _processes(settings: Settings) -> list[str]:
    """Container runtimes, and processes with this cluster's state in arguments or environment."""
    runtime = f"{settings.cache}/containerd/"
    state = f"{settings.state}/".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            program = os.readlink(entry / "exe")
            words = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        visitor = words.split(b"\0")[0].endswith((b"kubectl", b"bash", b"sh"))
        if program.startswith(runtime) or (state in words + environment and not visitor):
            if start_time(int(entry.name)):
                shown = words.replace(b"\0", b" ").decode(errors="replace")[:100]
                found.append(f"process {entry.name} {shown}")
    return found


def _mounts(settings: Settings) -> list[str]:
    lines = Path("/proc/mounts").read_text().splitlines()
    marks = (f"{settings.state}/", "/var/lib/kubelet", "/run/containerd", "/run/netns")
    return [f"mount {line}" for line in lines if any(mark in line for mark in marks)]


def _links() -> list[str]:
    links = json.loads(run("ip", "-json", "link").stdout or "[]")
    prefixes = (names.BRIDGE, network.veth(0)[:-1])
    return [f"link {link['ifname']}" for link in links if link["ifname"].startswith(prefixes)]


def _routes() -> list[str]:
    routes = json.loads(run("ip", "-json", "route").stdout or "[]")
    return [f"route {r['dst']}" for r in routes if r["dst"].startswith(("10.244.", "10.100.0."))]
