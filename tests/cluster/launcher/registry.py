# SPDX-License-Identifier: Apache-2.0
"""A container registry on the bridge address, and a throttling proxy before it."""

import http.client
import json
from pathlib import Path

from . import network
from . import settings as names
from .process import Daemon
from .progress import Progress, wait_until
from .settings import ClusterError, Settings

_THROTTLE = Path(__file__).resolve().parents[1] / "programs" / "throttle"


def _server(settings: Settings) -> Daemon:
    return Daemon(settings.state, "registry")


def _proxy(settings: Settings) -> Daemon:
    return Daemon(settings.state, "registry-proxy")


def up(settings: Settings, progress: Progress) -> None:
    """Starts both; what was pushed before a `down` is still there."""
    since = progress.now()
    _start_server(settings)
    _start_proxy(settings)
    address = f"http://{names.BRIDGE_ADDRESS}:{names.REGISTRY_PORT}"
    progress.done(f"registry at {address}, throttled at :{names.REGISTRY_PROXY_PORT}", since)


def down(settings: Settings) -> None:
    """Connections are refused from here on. The content stays."""
    _proxy(settings).kill()
    _server(settings).kill()


def throttle(settings: Settings, rate: str) -> None:
    """Bytes per second of all downloads through the proxy; 0 stalls them; `unlimited` is the
    default."""
    if rate != "unlimited" and not rate.isdigit():
        raise ClusterError(f"rate {rate!r}: expected bytes per second, 0, or `unlimited`")
    settings.state.mkdir(parents=True, exist_ok=True)
    path = settings.state / "registry-rate"
    partial = path.with_suffix(".new")
    partial.write_text(rate)
    partial.rename(path)


def _start_server(settings: Settings) -> None:
    server = _server(settings)
    if not server.pid():
        network.require_free(names.REGISTRY_PORT, names.BRIDGE_ADDRESS)
    storage = settings.state / "registry-content"
    storage.mkdir(parents=True, exist_ok=True)
    config = settings.state / "registry.yml"
    listen = f"{names.BRIDGE_ADDRESS}:{names.REGISTRY_PORT}"
    content = {
        "version": "0.1",
        "log": {"level": "warn"},
        "storage": {
            "filesystem": {"rootdirectory": str(storage)},
            "delete": {"enabled": True},
        },
        "http": {"addr": listen},
    }
    config.write_text(json.dumps(content))
    server.start(settings.debs / "docker-registry/usr/bin/docker-registry", "serve", config)
    wait_until(lambda: _answers(server, names.REGISTRY_PORT), 20, lambda: server.tail())


def _start_proxy(settings: Settings) -> None:
    proxy = _proxy(settings)
    rate = settings.state / "registry-rate"
    if not rate.exists():
        throttle(settings, "unlimited")
    host = names.BRIDGE_ADDRESS
    keys = settings.pki
    proxy.start(
        *("/usr/bin/python3", _THROTTLE, rate, f"{host}:{names.REGISTRY_PORT}"),
        f"{host}:{names.REGISTRY_PROXY_PORT}",
        f"{host}:{names.REGISTRY_TLS_PORT},{keys}/registry.crt,{keys}/registry.key",
    )
    wait_until(lambda: _listens(proxy), 20, lambda: proxy.tail())


def _answers(daemon: Daemon, port: int) -> bool:
    daemon.require_alive()
    connection = http.client.HTTPConnection(names.BRIDGE_ADDRESS, port, timeout=2)
    try:
        connection.request("GET", "/v2/")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _listens(daemon: Daemon) -> bool:
    """Asks for a connection only: a throttled proxy would keep an answer back."""
    daemon.require_alive()
    connection = http.client.HTTPConnection(
        names.BRIDGE_ADDRESS, names.REGISTRY_PROXY_PORT, timeout=2
    )
    try:
        connection.connect()
        return True
    except OSError:
        return False
    finally:
        connection.close()
