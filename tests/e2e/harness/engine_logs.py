# SPDX-License-Identifier: Apache-2.0
"""The Helm value engineLogs.enabled in the built-in cluster: the setting of the operator, and its
right to read logs. Only the operator is restarted."""

from collections.abc import Iterator
from contextlib import contextmanager

from . import pods
from .installation import NAMESPACE
from .product import Product
from .waiting import wait_for
from .warmup import Warmup

_DEPLOYMENT = "deployment/cachewarm-operator"
_NAME = "cachewarm-operator-logs"
_GROUP = "rbac.authorization.k8s.io"


@contextmanager
def reading(product: Product) -> Iterator[None]:
    """The operator reads the logs of engines, and has the right to."""
    try:
        product.kubectl.apply(*_right())
        product.kubectl.run("set", "env", _DEPLOYMENT, "CACHEWARM_ENGINE_LOGS=true")
        product.wait_ready()
        yield
    finally:
        product.kubectl.run("set", "env", _DEPLOYMENT, "CACHEWARM_ENGINE_LOGS-")
        withdraw_right(product)
        product.kubectl.run("delete", "clusterrole", _NAME, "--ignore-not-found")
        product.wait_ready()


def withdraw_right(product: Product) -> None:
    product.kubectl.run("delete", "clusterrolebinding", _NAME, "--ignore-not-found")


def wait_engine(warmup: Warmup, pod: dict, seconds: float = 180) -> dict:
    """How the operator recorded what the engine of the pod logged about its start."""

    def recorded() -> dict | None:
        recent = warmup.status.get("starts", {}).get("recent", [])
        uid = pod["metadata"]["uid"]
        return next((each.get("engine") for each in recent if each["podUID"] == uid), None)

    what = f"the log of {pods.name(pod)} is in the status"
    return wait_for(what, recorded, seconds, warmup.kubectl)


def _right() -> list[dict]:
    role = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _NAME},
        "rules": [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}],
    }
    binding = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _NAME},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": _NAME},
        "subjects": [
            {"kind": "ServiceAccount", "name": "cachewarm-operator", "namespace": NAMESPACE}
        ],
    }
    return [role, binding]
