# SPDX-License-Identifier: Apache-2.0
"""Reads the operator's writes from the managed fields that the API server records."""

import json
import time

from . import pods
from .kubectl import Kubectl
from .warmup import Warmup


def last_writes(kubectl: Kubectl, warmup: Warmup) -> dict:
    """When the operator last changed something for `warmup`, a status too."""
    managers = {"cachewarm-operator", f"cw-{warmup.uid}"}
    text = kubectl.run("get", "nodecaches", "-o", "json", "--show-managed-fields")
    writes = {
        (pods.name(cache), entry["manager"]): entry["time"]
        for cache in json.loads(text)["items"]
        for entry in cache["metadata"]["managedFields"]
        if entry["manager"] in managers
    }
    found = kubectl.list("cachewarmups")
    versions = {pods.name(each): each["metadata"]["resourceVersion"] for each in found}
    return {"nodecaches": writes, "cachewarmups": versions}


def at_rest(kubectl: Kubectl, warmup: Warmup) -> dict | None:
    """last_writes(), where nothing was written for three seconds."""
    first = last_writes(kubectl, warmup)
    time.sleep(3)
    return first if last_writes(kubectl, warmup) == first else None
