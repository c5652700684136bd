# SPDX-License-Identifier: Apache-2.0
"""The bridge between machine and nodes, and one veth pair per node."""

import json
import socket

from . import settings as names
from .process import run
from .settings import ClusterError


def link_exists(name: str) -> bool:
    return run("ip", "link", "show", name, check=False).returncode == 0


def veth(index: int) -> str:
    return f"cwveth{index}"


def make_bridge() -> None:
    if link_exists(names.BRIDGE):
        return
    _refuse_overlap()
    run("ip", "link", "add", names.BRIDGE, "address", "02:00:0a:64:00:01", "type", "bridge")
    run("ip", "addr", "add", f"{names.BRIDGE_ADDRESS}/24", "dev", names.BRIDGE)
    run("ip", "addr", "add", f"{names.SERVICE_ADDRESS}/32", "dev", names.BRIDGE)
    run("ip", "link", "set", names.BRIDGE, "up")


def attach(index: int, pid: int) -> None:
    """Gives the network namespace of `pid` an eth0 on the bridge; node-init sets its address."""
    if not link_exists(veth(index)):
        run(
            *("ip", "link", "add", veth(index), "type", "veth", "peer", "name", "eth0"),
            *("address", f"02:00:0a:64:00:1{index}", "netns", pid),
        )
        run("ip", "link", "set", veth(index), "master", names.BRIDGE, "up")
    route = names.pod_subnet(index)
    run("ip", "route", "replace", route, "via", names.node_address(index))


def detach(index: int) -> None:
    """Removes the pair; a node's end may outlive its namespace by some milliseconds."""
    run("ip", "link", "del", veth(index), check=False)
    run("ip", "route", "del", names.pod_subnet(index), check=False)


def remove_bridge() -> None:
    run("ip", "link", "del", names.BRIDGE, check=False)


def require_free(port: int, address: str = "") -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise ClusterError(
                f"port {port} is taken ({error.strerror}): see `ss -ltnp sport = :{port}`,"
                " stop that program, then run this again"
            ) from error


def _refuse_overlap() -> None:
    routes = json.loads(run("ip", "-json", "route").stdout or "[]")
    for route in routes:
        if route.get("dst", "").startswith(("10.100.0.", "10.244.", "10.96.")):
            raise ClusterError(
                f"the machine already routes {route['dst']} over {route.get('dev')};"
                " the test cluster needs 10.100.0.0/24, 10.96.0.0/16 and 10.244.0.0/16 for itself"
            )
