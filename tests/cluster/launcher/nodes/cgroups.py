# SPDX-License-Identifier: Apache-2.0
"""A cgroup per node, made before its kubelet starts; without one the kubelets share /kubepods and
would remove each other's pods. Works with cgroup v1 hierarchies and with the unified v2 one."""

import os
import time
from pathlib import Path

from ..settings import CGROUP, Settings

_ROOT = Path("/sys/fs/cgroup")
_V1_CONTROLLERS = "cpu cpuacct cpuset memory devices freezer blkio pids systemd".split()
_V2_CONTROLLERS = "cpu cpuset memory pids io".split()


def _unified() -> bool:
    return (_ROOT / "cgroup.controllers").exists()


def make(settings: Settings, node: str) -> None:
    top = settings.cgroup
    if _unified():
        for parent in (_ROOT, _ROOT / top, _ROOT / top / node):
            parent.mkdir(exist_ok=True)
            _enable(parent)
        return
    for controller in _V1_CONTROLLERS:
        if (_ROOT / controller).is_dir():
            (_ROOT / controller / top / node).mkdir(parents=True, exist_ok=True)
    for name in ("cpuset.cpus", "cpuset.mems"):
        value = (_ROOT / "cpuset" / name).read_text()
        for group in (top, f"{top}/{node}"):
            (_ROOT / "cpuset" / group / name).write_text(value)


def _enable(group: Path) -> None:
    offered = (group / "cgroup.controllers").read_text().split()
    for controller in _V2_CONTROLLERS:
        if controller in offered:
            (group / "cgroup.subtree_control").write_text(f"+{controller}")


def groups(settings: Settings, name: str = "") -> list[Path]:
    """The directories of one node, or of all nodes, in every hierarchy."""
    return [p for p in (root / settings.cgroup / name for root in _roots()) if p.is_dir()]


def any_cluster() -> bool:
    """Some cluster of this machine has nodes."""
    return any(found for root in _roots() for found in root.glob(f"{CGROUP}*"))


def _roots() -> list[Path]:
    return [_ROOT] if _unified() else [_ROOT / c for c in _V1_CONTROLLERS]


def remove(settings: Settings, name: str = "", seconds: float = 5) -> bool:
    """Removes them bottom up; processes that are still dying keep a group busy for a moment."""
    deadline = time.monotonic() + seconds
    while groups(settings, name) and time.monotonic() < deadline:
        for top in groups(settings, name):
            for directory, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(directory)
                except OSError:
                    pass
        if groups(settings, name):
            time.sleep(0.1)
    return not groups(settings, name)
