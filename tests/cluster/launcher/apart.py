# SPDX-License-Identifier: Apache-2.0
"""A network namespace for a cluster that runs apart: several such clusters use the same addresses
and ports side by side. A process that sleeps keeps the namespace, until `end`."""

import ctypes
import os

from .process import Daemon, run
from .progress import wait_until
from .settings import ClusterError, Settings

_CLONE_NEWNET = 0x40000000


def enter(settings: Settings, make: bool) -> None:
    """This process, and those that it starts, are in the namespace from here on. Without `make`
    nothing happens where there is none."""
    keeper = _keeper(settings)
    if make and not keeper.pid():
        settings.state.mkdir(parents=True, exist_ok=True)
        state = {"CACHEWARM_CLUSTER": f"{settings.state}/"}  # by which `check-clean` knows it
        keeper.start("/usr/bin/unshare", "--net", "/usr/bin/sleep", "infinity", env=state)
        wait_until(lambda: _has_its_own(keeper), 10, lambda: f"no network: {keeper.tail()}")
    pid = keeper.pid()
    if not pid:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{pid}/ns/net", "rb") as namespace:
        if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
            raise ClusterError(f"setns: {os.strerror(ctypes.get_errno())}")
    if make:
        run("ip", "link", "set", "lo", "up")


def end(settings: Settings) -> None:
    _keeper(settings).kill()


def _keeper(settings: Settings) -> Daemon:
    return Daemon(settings.state, "network")


def _has_its_own(keeper: Daemon) -> bool:
    keeper.require_alive()
    return os.readlink(f"/proc/{keeper.pid()}/ns/net") != os.readlink("/proc/self/ns/net")
