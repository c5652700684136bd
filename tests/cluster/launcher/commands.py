# SPDX-License-Identifier: Apache-2.0
"""The verbs of tests/cluster/cluster."""

import argparse
import contextlib
import fcntl
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import apart, cleanliness, control_plane, kwok, network, registry
from . import settings as names
from .nodes import cgroups, lifecycle
from .progress import Progress
from .settings import ClusterError, Settings

_VERBS = {}


def _verb(name: str, summary: str, *arguments: tuple):
    def register(function):
        _VERBS[name] = (function, summary, arguments)
        return function

    return register


@_verb(
    "up",
    "control plane, nodes and registry; nothing happens to what already runs",
    ("nodes", {"nargs": "*", "default": list(names.DEFAULT_NODES), "metavar": "node"}),
)
def up(settings: Settings, progress: Progress, options) -> None:
    for name in options.nodes:
        names.node_index(name)
    control_plane.up(settings, progress)
    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(lifecycle.up, settings, name, progress) for name in options.nodes]
        jobs.append(pool.submit(registry.up, settings, progress))
    for job in jobs:
        job.result()
    progress.done("cluster up; `eval $(tests/cluster/cluster env)` gives you kubectl")


@_verb(
    "down",
    "stop everything and remove every trace",
    (
        "--keep",
        {"action": "store_true", "help": "keep the state directory (disks, etcd, registry)"},
    ),
)
def down(settings: Settings, progress: Progress, options) -> None:
    kwok.down(settings)
    registry.down(settings)
    failures = []
    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(lifecycle.down, settings, name) for name in settings.node_names()]
    for job in jobs:
        if job.exception():
            failures.append(str(job.exception()))
    control_plane.down(settings)
    if not settings.apart:  # its bridge ends with its namespace; this one belongs to others
        network.remove_bridge()
    cgroups.remove(settings)
    lifecycle.remove_mount_points()
    apart.end(settings)
    if not options.keep:
        shutil.rmtree(settings.state, ignore_errors=True)
    if failures:
        raise ClusterError("; ".join(failures))
    progress.done("cluster down")


@_verb("check-clean", "print what is left on the machine; nothing and exit 0 when clean")
def check_clean(settings: Settings, progress: Progress, options) -> None:
    found = cleanliness.leftovers(settings)
    print("\n".join(found), end="\n" if found else "")
    if found:
        raise ClusterError(f"{len(found)} things left: run `tests/cluster/cluster down`")


@_verb(
    "node-up",
    "power a node on and wait until it is Ready",
    ("node", {}),
    (
        "--taint",
        {
            "action": "append",
            "default": [],
            "metavar": "KEY:EFFECT",
            "help": "that its kubelet registers it with; nothing happens to a node that is known",
        },
    ),
)
def node_up(settings: Settings, progress: Progress, options) -> None:
    lifecycle.up(settings, options.node, progress, options.taint)


@_verb(
    "node-down",
    "cut a node's power",
    ("node", {}),
    ("--purge", {"action": "store_true", "help": "also delete its disk and its Node object"}),
)
def node_down(settings: Settings, progress: Progress, options) -> None:
    lifecycle.down(settings, options.node, options.purge)
    progress.done(f"{options.node} off")


@_verb("node-reboot", "cut a node's power and power it on again, same disk", ("node", {}))
def node_reboot(settings: Settings, progress: Progress, options) -> None:
    lifecycle.down(settings, options.node)
    lifecycle.up(settings, options.node, progress)


@_verb(
    "in-node",
    "run a command inside a node (ctr, ip, ls ...)",
    ("node", {}),
    ("command", {"nargs": argparse.REMAINDER}),
)
def in_node(settings: Settings, progress: Progress, options) -> None:
    command = lifecycle.enter(settings, options.node, options.command or ["bash"])
    os.execvp(command[0], command)


@_verb(
    "in-network",
    "run a command where the cluster's addresses are, also those of one that runs apart",
    ("command", {"nargs": argparse.REMAINDER}),
)
def in_network(settings: Settings, progress: Progress, options) -> None:
    os.execvp(options.command[0], options.command)


@_verb("registry-up", "start the registry and its throttling proxy")
def registry_up(settings: Settings, progress: Progress, options) -> None:
    registry.up(settings, progress)


@_verb("registry-down", "stop them; the content stays")
def registry_down(settings: Settings, progress: Progress, options) -> None:
    registry.down(settings)
    progress.done("registry off")


@_verb("registry-restart", "stop and start them")
def registry_restart(settings: Settings, progress: Progress, options) -> None:
    registry.down(settings)
    registry.up(settings, progress)


@_verb(
    "registry-throttle",
    "limit downloads through the proxy",
    ("rate", {"help": "bytes/s, 0, unlimited"}),
)
def registry_throttle(settings: Settings, progress: Progress, options) -> None:
    registry.throttle(settings, options.rate)


@_verb("apiserver-restart", "stop and start kube-apiserver")
def apiserver_restart(settings: Settings, progress: Progress, options) -> None:
    control_plane.restart_apiserver(settings, progress)


@_verb("apiserver-down", "stop kube-apiserver")
def apiserver_down(settings: Settings, progress: Progress, options) -> None:
    control_plane.stop_apiserver(settings)
    progress.done("apiserver off")


@_verb("apiserver-up", "start kube-apiserver")
def apiserver_up(settings: Settings, progress: Progress, options) -> None:
    control_plane.start_apiserver(settings)
    progress.done("apiserver on")


@_verb("kwok", "have N kwok nodes; 0 removes them", ("count", {"type": int}))
def kwok_nodes(settings: Settings, progress: Progress, options) -> None:
    if options.count:
        kwok.up(settings, options.count, progress)
    else:
        kwok.remove_nodes(settings)
        kwok.down(settings)


@_verb(
    "load-image",
    "import OCI tars into every node, and into nodes that come later",
    ("archives", {"nargs": "+", "type": Path}),
)
def load_image(settings: Settings, progress: Progress, options) -> None:
    for archive in options.archives:
        lifecycle.load_image(settings, archive, progress)


@_verb("fake-gpus", "give a node N nvidia.com/gpu", ("node", {}), ("count", {"type": int}))
def fake_gpus(settings: Settings, progress: Progress, options) -> None:
    lifecycle.make_fake_gpus(settings, options.node, options.count)


@_verb(
    "env",
    "shell lines that set KUBECONFIG and PATH",
    ("--kubeconfig", {"action": "store_true", "help": "only the path of the kubeconfig"}),
)
def env(settings: Settings, progress: Progress, options) -> None:
    if options.kubeconfig:
        print(settings.kubeconfig)
        return
    print(f"export KUBECONFIG={settings.kubeconfig}")
    print(f"export PATH={settings.kubebox.parent}:{settings.artifact('helm')}:$PATH")


_UNLOCKED = {"env", "in-node", "in-network", "check-clean", "registry-throttle"}


@contextlib.contextmanager
def _locked(settings: Settings):
    """One changing command at a time; the lock file is beside the state, which `down` removes."""
    with open(f"{settings.state}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="cluster", description="A real Kubernetes on one machine."
    )
    parsers = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    for name, (_, summary, words) in _VERBS.items():
        sub = parsers.add_parser(name, help=summary)
        for word, keywords in words:
            sub.add_argument(word, **keywords)
    options = parser.parse_args(arguments)
    try:
        settings = Settings.load()
        if os.geteuid() != 0:
            raise ClusterError("needs root for namespaces and cgroups: run it with sudo -E")
        if settings.apart:
            apart.enter(settings, make=options.verb == "up")
        guard = contextlib.nullcontext() if options.verb in _UNLOCKED else _locked(settings)
        with guard:
            _VERBS[options.verb][0](settings, Progress(), options)
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    return 0
