# SPDX-License-Identifier: Apache-2.0
"""Starting, power-cutting and entering a node, and giving it images."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from .. import control_plane, network, pki
from .. import settings as names
from ..process import Daemon, children, run
from ..progress import Progress, wait_until
from ..settings import ClusterError, Settings
from . import cgroups, configuration

_INIT = Path(__file__).resolve().parents[2] / "programs" / "node-init"
_MOUNT_POINTS = Path("/tmp/cachewarm-mount-points")
_NAMESPACES = ("-m", "-n", "-p", "-u", "-i")


def _daemon(settings: Settings, name: str) -> Daemon:
    return Daemon(settings.node(name), "node")


def init_pid(settings: Settings, name: str) -> int | None:
    """The machine's pid of the node's PID 1; None while the node is off."""
    holder = _daemon(settings, name).pid()
    inside = children(holder) if holder else []
    return inside[0] if inside else None


def up(
    settings: Settings, name: str, progress: Progress, taints: Sequence[str] = ()
) -> None:
    """Powers the node on and waits until Kubernetes calls it Ready. Idempotent. `taints`, as
    KEY:EFFECT, are those that a Node object which this start makes begins with."""
    since = progress.now()
    index = names.node_index(name)
    booted = 0.0
    if not init_pid(settings, name):
        booted = time.time()
        with _mount_points():
            cgroups.make(settings, name)
            _make_mount_points()
        configuration.write(settings, name, taints)
        for path in configuration.VOLATILE_PATHS:
            _empty(settings.node(name) / "disk" / path[1:])
        _offer_images(settings, name)
        network.detach(index)
        _power_on(settings, name, index)
    _wait_ready(settings, name, booted)
    progress.done(f"{name} Ready", since)


def down(settings: Settings, name: str, purge: bool = False) -> None:
    """Power cut: everything in the node dies at once. `purge` also takes its disk and Node
    object."""
    index = names.node_index(name)
    pid = init_pid(settings, name)
    if pid:
        os.kill(pid, signal.SIGKILL)
    _daemon(settings, name).kill()
    network.detach(index)
    if not cgroups.remove(settings, name):
        raise ClusterError(f"cgroups of {name} are still busy: {cgroups.groups(settings, name)[0]}")
    if purge:
        shutil.rmtree(settings.node(name), ignore_errors=True)
        control_plane.kubectl(settings, "delete", "node", name, "--ignore-not-found")


def enter(settings: Settings, name: str, command: list[str]) -> list[str]:
    """The command line that runs `command` inside the node."""
    pid = init_pid(settings, name)
    if not pid:
        raise ClusterError(
            f"{name} is not running: start it with `tests/cluster/cluster node-up {name}`"
        )
    path = f"PATH={_search_path(settings)}"
    return ["nsenter", "-t", str(pid), *_NAMESPACES, "env", path, *command]


def load_image(settings: Settings, archive: Path, progress: Progress) -> None:
    """Imports an OCI tar into every running node and keeps it for nodes that start later."""
    if not archive.is_file():
        raise ClusterError(f"{archive} is not a file: build the image first (images/build-rootfs)")
    settings.images.mkdir(parents=True, exist_ok=True)
    kept = settings.images / archive.name
    digest = _digest(archive)
    if not kept.exists() or _digest(kept) != digest:
        partial = kept.with_suffix(".new")
        shutil.copyfile(archive, partial)
        partial.rename(kept)

    def give(name: str) -> None:
        mark = _mark(settings, name, kept)
        if init_pid(settings, name) and not (mark.exists() and mark.read_text() == digest):
            since = progress.now()
            run(*enter(settings, name, ["ctr", "-n", "k8s.io", "images", "import", str(kept)]))
            mark.write_text(digest)
            progress.done(f"{archive.name} in {name}", since)

    with ThreadPoolExecutor() as pool:
        list(pool.map(give, settings.node_names()))


def make_fake_gpus(settings: Settings, name: str, count: int) -> None:
    """Capacity nvidia.com/gpu without a device plugin; it survives the kubelet's heartbeats."""
    patch = ",".join(
        f'{{"op":"add","path":"/status/{field}/nvidia.com~1gpu","value":"{count}"}}'
        for field in ("capacity", "allocatable")
    )
    words = ("patch", "node", name, "--subresource=status", "--type=json", "-p", f"[{patch}]")
    control_plane.kubectl(settings, *words)


@contextlib.contextmanager
def _mount_points() -> Iterator[None]:
    """One cluster at a time makes or removes them: all clusters of a machine share them."""
    with open(f"{_MOUNT_POINTS}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove_mount_points() -> None:
    """Takes back the empty directories that _make_mount_points made, and no others, once no
    cluster has nodes: a node loses what is mounted on a directory that goes."""
    with _mount_points():
        if _MOUNT_POINTS.exists() and not cgroups.any_cluster():
            for path in sorted(_MOUNT_POINTS.read_text().split(), reverse=True):
                with contextlib.suppress(OSError):
                    os.rmdir(path)
            _MOUNT_POINTS.unlink()


def _make_mount_points() -> None:
    made = []
    for path in configuration.NODE_PATHS:
        for directory in [*reversed(Path(path).parents), Path(path)]:
            if not directory.exists():
                directory.mkdir(exist_ok=True)
                made.append(str(directory))
    if made:
        with open(_MOUNT_POINTS, "a", encoding="utf-8") as record:
            record.write("\n".join(made) + "\n")


def _search_path(settings: Settings) -> str:
    first = f"{settings.containerd_dir}:{settings.debs}/runc/usr/sbin:{settings.kubebox.parent}"
    return f"{first}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _power_on(settings: Settings, name: str, index: int) -> None:
    kubeconfig = pki.client(settings, f"kubelet-{name}", f"/O=system:nodes/CN=system:node:{name}")
    environment = {
        "NODE": name,
        "INDEX": str(index),
        "ADDRESS": names.node_address(index),
        "NODE_DIR": str(settings.node(name)),
        "NODE_PATHS": " ".join(configuration.NODE_PATHS),
        "PEERS": " ".join(str(i + 1) for i in range(len(names.NODE_LETTERS))),
        "MACHINE": names.BRIDGE_ADDRESS,
        "KUBEBOX": str(settings.kubebox),
        "KUBECONFIG": str(kubeconfig),
        "PATH": _search_path(settings),
        "HOME": "/root",
        "GOGC": os.environ.get("GOGC", "100"),
    }
    node = _daemon(settings, name)
    unshare = ("unshare", *_NAMESPACES, "--fork", "--kill-child=KILL", "--mount-proc")
    node.start(*unshare, _INIT, env=environment)
    pid = wait_until(lambda: init_pid(settings, name), 10, lambda: f"{name}: {node.tail()}")
    network.attach(index, pid)


def _wait_ready(settings: Settings, name: str, booted: float) -> None:
    """Ready as said by the kubelet of this boot: the word of the one before stays for seconds."""
    node = _daemon(settings, name)

    def ready() -> bool:
        node.require_alive()
        answer = control_plane.read(settings, f"/api/v1/nodes/{name}")
        if not answer:
            return False
        conditions = json.loads(answer)["status"].get("conditions", [])
        said = [c for c in conditions if c["type"] == "Ready" and c["status"] == "True"]
        return bool(said) and _epoch(said[0]["lastHeartbeatTime"]) >= int(booted)

    log = settings.node(name) / "kubelet.log"
    wait_until(ready, 180, lambda: f"{name} is not Ready; see {log}", every=0.25)


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _offer_images(settings: Settings, name: str) -> None:
    """Links every image that this node's disk does not hold yet into NODE/import for node-init,
    which writes NODE/imported/<file>, the digest of what it imported."""
    queue = settings.node(name) / "import"
    shutil.rmtree(queue, ignore_errors=True)
    queue.mkdir(parents=True)
    (settings.node(name) / "imported").mkdir(exist_ok=True)
    for archive in [*settings.base_images.glob("*.tar"), *settings.images.glob("*.tar")]:
        mark = _mark(settings, name, archive)
        digest = _digest(archive)
        if not mark.exists() or mark.read_text() != digest:
            (queue / archive.name).symlink_to(archive)
            (queue / f"{archive.name}.digest").write_text(digest)


def _mark(settings: Settings, name: str, archive: Path) -> Path:
    return settings.node(name) / "imported" / archive.name


def _digest(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def _empty(directory: Path) -> None:
    for entry in directory.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
