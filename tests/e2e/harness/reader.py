# SPDX-License-Identifier: Apache-2.0
"""Reads objects as `kubectl get -o json` prints them, and creates, patches and deletes them as
kubectl does, without starting kubectl: tests ask for the same few kinds several times a second, and
kubectl needs a tenth of a second of a processor to start."""

import functools
import http.client
import json
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

from .api import Api

# Name as tests write it: group and version, path, kind. None of them is cut into pages.
_NODES = ("v1", "nodes", "Node")
_NAMESPACES = ("v1", "namespaces", "Namespace")
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
    "namespace": _NAMESPACES,
    "service": ("v1", "services", "Service"),
    "resourcequota": ("v1", "resourcequotas", "ResourceQuota"),
    "events.events.k8s.io": ("events.k8s.io/v1", "events", "Event"),
}
_OF_THE_CLUSTER = (_NODES, _CACHES, _NAMESPACES)


class ReadError(Exception):
    """The server's words, or why there was no answer."""


class ExistsError(ReadError):
    """There is an object of that name already."""


@dataclass(frozen=True)
class Target:
    """One object by its name."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{_path(self.kind, self.namespace)}/{quote(self.name)}"


class Reader:
    """Has the identity of a kubeconfig, or of `user` where that may impersonate. Safe to use from
    several threads."""

    def __init__(self, kubeconfig: Path, user: str = ""):
        self._api = Api(kubeconfig)
        self._headers = {"Impersonate-User": user} if user else {}
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

    def create(self, namespace: str, thing: dict, dry_run: bool) -> dict:
        """The object as the server has it. As kubectl, refuses fields that the server does not
        know."""
        path = _path(_kind_of(thing), thing["metadata"].get("namespace", namespace))
        query = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        return self._write("POST", f"{path}?{urlencode(query)}", thing)

    def patch(self, path: Target, patch: object, subresource: str = "") -> dict:
        kind = "json" if isinstance(patch, list) else "merge"
        where = f"{path}/{subresource}" if subresource else str(path)
        return self._write("PATCH", where, patch, f"application/{kind}-patch+json")

    def delete(self, target: Target, grace_seconds: int | None) -> None:
        """Returns before the object is gone. No error where there is none."""
        options: dict = {"propagationPolicy": "Background"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        status, body = self._ask(str(target), "DELETE", options)
        if status != 404:
            _checked(status, body)

    def delete_all(self, kind: str, namespace: str) -> None:
        """Without a grace period. Returns before they are gone."""
        _checked(*self._ask(_path(kind, namespace), "DELETE", {"gracePeriodSeconds": 0}))

    def logs(self, namespace: str, pod: str) -> str:
        """Of the pod's one container; "" while there is none."""
        status, body = self._ask(f"{_path('pod', namespace)}/{quote(pod)}/log")
        return body["text"] if status == 200 else ""

    def _write(self, method: str, path: str, body: object, content="application/json") -> dict:
        answer = _checked(*self._ask(path, method, body, content))
        answer["metadata"].pop("managedFields", None)
        return answer

    def _ask(
        self, path: str, method="GET", body: object = None, content="application/json"
    ) -> tuple[int, dict]:
        words = (method, path, body, content)
        try:
            try:
                return self._ask_once(*words)
            except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
                return self._ask_once(*words)  # the connection had gone while nobody used it
        except (OSError, http.client.HTTPException) as error:
            raise ReadError(f"{method} {path}: {error!r}") from error

    def _ask_once(self, method: str, path: str, body: object, content: str) -> tuple[int, dict]:
        connection = getattr(self._local, "connection", None) or self._api.connect()
        self._local.connection = None
        text_in = None if body is None else json.dumps(body)
        headers = {**self._headers, **({} if body is None else {"Content-Type": content})}
        try:
            connection.request(method, path, text_in, headers)
            answer = connection.getresponse()
            text = answer.read()
        except BaseException:
            connection.close()
            raise
        self._local.connection = connection
        try:
            if answer.getheader("Content-Type", "").startswith("text/plain"):
                raise ValueError("a log, or the words of a proxy")
            return answer.status, json.loads(text)
        except ValueError:
            whole = text.decode(errors="replace")
            return answer.status, {"message": whole[:300], "text": whole}


@functools.cache
def of(kubeconfig: str, user: str = "") -> Reader:
    return Reader(Path(kubeconfig), user)


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


def _kind_of(thing: dict) -> str:
    """Its name in _KINDS; "" where it has none."""
    found = (thing.get("apiVersion"), thing.get("kind"))
    return next((name for name, row in _KINDS.items() if (row[0], row[2]) == found), "")


def is_of_the_cluster(thing: dict) -> bool:
    return _KINDS[_kind_of(thing)] in _OF_THE_CLUSTER


def knows_kind_of(thing: dict) -> bool:
    return bool(_kind_of(thing))


def _checked(status: int, body: dict) -> dict:
    if body.get("reason") == "AlreadyExists":
        raise ExistsError(body["message"])
    if status not in (200, 201, 202):
        raise ReadError(f"{status}: {body.get('message', body)}")
    return body


def _as_printed(thing: dict, kind: str) -> dict:
    """Items of a list do not say what they are; kubectl says it, and hides the managed fields."""
    version, _, name = _KINDS[_singular(kind)]
    thing["metadata"].pop("managedFields", None)
    return {"apiVersion": version, "kind": name, **thing}
