# SPDX-License-Identifier: Apache-2.0
"""Reads objects as `kubectl get -o json` prints them, without starting kubectl: tests read the same
few kinds several times a second, and kubectl needs a tenth of a second of a processor to start."""

import functools
import http.client
import json
import threading
from pathlib import Path
from urllib.parse import quote, urlencode

from .api import Api

# Name as tests write it: group and version, path, kind. None of them is cut into pages.
_NODES = ("v1", "nodes", "Node")
_CACHES = ("cachewarm.io/v1alpha1", "nodecaches", "NodeCache")
_WARMUPS = ("cachewarm.io/v1alpha1", "cachewarmups", "CacheWarmup")
_DISRUPTIONS = ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget")
_KINDS = {
    "pod": ("v1", "pods", "Pod"),
    "node": _NODES,
    "serviceaccount": ("v1", "serviceaccounts", "ServiceAccount"),
    "cachewarmup": _WARMUPS,
    "cw": _WARMUPS,
    "nodecache": _CACHES,
    "nc": _CACHES,
    "deployment": ("apps/v1", "deployments", "Deployment"),
    "statefulset": ("apps/v1", "statefulsets", "StatefulSet"),
    "daemonset": ("apps/v1", "daemonsets", "DaemonSet"),
    "replicaset": ("apps/v1", "replicasets", "ReplicaSet"),
    "job": ("batch/v1", "jobs", "Job"),
    "cronjob": ("batch/v1", "cronjobs", "CronJob"),
    "pdb": _DISRUPTIONS,
    "lease": ("coordination.k8s.io/v1", "leases", "Lease"),
    "endpointslice": ("discovery.k8s.io/v1", "endpointslices", "EndpointSlice"),
    "events.events.k8s.io": ("events.k8s.io/v1", "events", "Event"),
}
_OF_THE_CLUSTER = (_NODES, _CACHES)


class ReadError(Exception):
    """The server's words, or why there was no answer."""


class Reader:
    """Reads with the identity of a kubeconfig. Safe to use from several threads."""

    def __init__(self, kubeconfig: Path):
        self._api = Api(kubeconfig)
        self._local = threading.local()

    def get(self, kind: str, namespace: str, name: str) -> dict | None:
        """None: there is no object of that name."""
        status, body = self._ask(f"{_path(kind, namespace)}/{quote(name)}")
        if status == 404 and body.get("details", {}).get("name") == name:
            return None
        return _as_printed(_checked(status, body), kind)

    def list(self, kind: str, namespace: str, selector: str) -> list[dict]:
        """`namespace` "": of all namespaces."""
        query = f"?{urlencode({'labelSelector': selector})}" if selector else ""
        status, body = self._ask(_path(kind, namespace) + query)
        return [_as_printed(each, kind) for each in _checked(status, body)["items"]]

    def _ask(self, path: str) -> tuple[int, dict]:
        try:
            try:
                return self._ask_once(path)
            except (http.client.RemoteDisconnected, ConnectionError):
                return self._ask_once(path)  # the connection had gone while nobody used it
        except (OSError, http.client.HTTPException) as error:
            raise ReadError(f"GET {path}: {error!r}") from error

    def _ask_once(self, path: str) -> tuple[int, dict]:
        connection = getattr(self._local, "connection", None) or self._api.connect()
        self._local.connection = None
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read()
        except BaseException:
            connection.close()
            raise
        self._local.connection = connection
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, {"message": text[:300].decode(errors="replace")}


@functools.cache
def of(kubeconfig: str) -> Reader:
    return Reader(Path(kubeconfig))


def knows(kind: str) -> bool:
    return _singular(kind) in _KINDS


def _singular(kind: str) -> str:
    return kind if kind in _KINDS else kind.removesuffix("s")


def _path(kind: str, namespace: str) -> str:
    row = _KINDS[_singular(kind)]
    version, plural, _ = row
    base = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    if row in _OF_THE_CLUSTER or not namespace:
        return f"{base}/{plural}"
    return f"{base}/namespaces/{quote(namespace)}/{plural}"


def _checked(status: int, body: dict) -> dict:
    if status != 200:
        raise ReadError(f"{status}: {body.get('message', body)}")
    return body


def _as_printed(thing: dict, kind: str) -> dict:
    """Items of a list do not say what they are; kubectl says it, and hides the managed fields."""
    version, _, name = _KINDS[_singular(kind)]
    thing["metadata"].pop("managedFields", None)
    return {"apiVersion": version, "kind": name, **thing}
