# SPDX-License-Identifier: Apache-2.0
"""Held pods without a model server: small pods with our gate, by a warmup or from the start."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from .definitions import OPERATOR, impersonating, warmup
from .kubectl import Kubectl
from .waiting import wait_for
from .warmup import GATE, Warmup, gated


def small_pod(name: str, labels: dict[str, str] | None = None) -> dict:
    container = {
        "name": "server",
        "image": "localhost/busybox:1",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "3600"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }


def update_probe(kubectl: Kubectl) -> Callable[[], bool]:
    """Creates a pod that never runs. Returns a function that tries an update of it as a dry run,
    and returns whether the API server accepted it."""
    pod = small_pod("probe")
    pod["spec"]["schedulingGates"] = [{"name": "example.com/never"}]
    kubectl.create(pod)
    change = json.dumps({"metadata": {"annotations": {"example.com/asked": "yes"}}})
    words = ("patch", "pod", "probe", "--type=merge", "--dry-run=server", "-p", change)
    return lambda: "patched" in kubectl.run(*words, check=False)


def held_pod(name: str, until: float | None = None, others: tuple[str, ...] = ()) -> dict:
    """Held from its creation on; `until`: seconds from now that the pod notes as its deadline."""
    pod = small_pod(name)
    pod["spec"]["schedulingGates"] = [{"name": gate} for gate in (*others, GATE)]
    notes = {"cachewarm.io/warmup": "nobody"}
    if until is not None:
        moment = datetime.now(timezone.utc) + timedelta(seconds=until)
        notes["cachewarm.io/held-until"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    pod["metadata"]["annotations"] = notes
    return pod


def hold_everything(kubectl: Kubectl, labels: dict[str, str]) -> Warmup:
    """A warmup that holds every new pod of `labels`, as an operator that died has left it behind.
    No operator may run: it would correct that."""
    thing = warmup("left-behind", selector={"matchLabels": labels})
    thing["metadata"]["labels"] = {"cachewarm.io/inject": "true"}
    kubectl.apply(thing)
    injection = {"labels": labels, "container": "server", "gate": True, "env": []}
    impersonating(kubectl, OPERATOR).patch(
        "cw", "left-behind", {"status": {"injection": injection}}, "--subresource=status"
    )
    wait_for(
        "new pods are held",
        lambda: gated(kubectl.create(small_pod("probe", labels), "--dry-run=server")),
        60,
        kubectl,
    )
    return Warmup(kubectl, "left-behind")
