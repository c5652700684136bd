# SPDX-License-Identifier: Apache-2.0
"""Translates the audit log of the API server into changes of objects. Pure: no cluster, no files.

Needs the answers of the API server: a cluster that was started with CACHEWARM_AUDIT=objects. The
status of a pod in it is that of the kubelet of its node, which writes it."""

import json
from collections.abc import Iterator

from .judge import Seen, seconds

KINDS = {
    ("", "pods"): "Pod",
    ("", "nodes"): "Node",
    ("batch", "jobs"): "Job",
    ("cachewarm.io", "nodecaches"): "NodeCache",
}
_FIRST = '{"kind":"Event"'


class Changes:
    """Call with the lines in the order of the log, and with lists in between. An object that is
    older than the last one that was returned is left out: requests may end in another order than
    their writes."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], dict] = {}  # by kind, namespace, name
        self._gone: set[str] = set()  # uids
        self.unreadable = 0

    def read(self, line: str) -> list[Seen]:
        # A line that the end of an API server truncated is continued by the first of the next one.
        try:
            event = json.loads(line[max(line.rfind(_FIRST), 0):])
        except ValueError:
            self.unreadable += 1
            return []
        return list(self._changes(event)) if _is_done(event) else []

    def listed(self, kind: str, things: list[dict], version: str, now: float) -> list[Seen]:
        """Takes a list of all objects of the kind, read at `now`: the API server may have been
        killed between a write and its line."""
        out = []
        there = {thing["metadata"]["uid"] for thing in things}
        for key, known in list(self._known.items()):
            is_gone = key[0] == kind and known["metadata"]["uid"] not in there
            if is_gone and _version(known) <= int(version):
                out.append(self._delete(key, now))
        for thing in things:
            out += self._see("MODIFIED", {**thing, "kind": kind}, now)
        return out

    def _changes(self, event: dict) -> Iterator[Seen]:
        about, verb = event["objectRef"], event["verb"]
        kind = KINDS[about.get("apiGroup", ""), about["resource"]]
        at, by = seconds(event["stageTimestamp"]), event["user"].get("username", "")
        answer = event.get("responseObject") or {}
        key = (kind, about.get("namespace", ""), about.get("name", ""))
        if verb == "deletecollection":
            if "Selector=" not in event.get("requestURI", ""):
                for each in [each for each in self._known if each[:2] == key[:2]]:
                    yield self._delete(each, at)
        elif verb == "delete":
            yield from self._deleted(key, answer, at)
        elif answer.get("kind") == kind:
            request = event.get("requestObject")
            what = "ADDED" if verb == "create" else "MODIFIED"
            yield from self._see(what, answer, at, by, request)

    def _deleted(self, key: tuple[str, str, str], answer: dict, at: float) -> Iterator[Seen]:
        """A pod with a grace period stays until its kubelet deletes it. Of most other objects only
        the uid is answered."""
        metadata = answer.get("metadata", {})
        if answer.get("kind") == key[0] and metadata.get("deletionGracePeriodSeconds"):
            yield from self._see("MODIFIED", answer, at)
            return
        uid = metadata.get("uid") or answer.get("details", {}).get("uid")
        known = self._known.get(key)
        if known and uid in (None, known["metadata"]["uid"]):
            yield self._delete(key, at)
        elif uid and uid not in self._gone:
            self._gone.add(uid)
            gone = {"uid": uid, "namespace": key[1], "name": key[2]}
            yield Seen(at, "DELETED", {"kind": key[0], "metadata": gone, "spec": {}, "status": {}})

    def _delete(self, key: tuple[str, str, str], at: float) -> Seen:
        self._gone.add(self._known[key]["metadata"]["uid"])
        return Seen(at, "DELETED", self._known.pop(key))

    def _see(
        self, what: str, thing: dict, at: float, by: str = "", request: object = None
    ) -> list[Seen]:
        metadata = thing["metadata"]
        key = (thing["kind"], metadata.get("namespace", ""), metadata["name"])
        known = self._known.get(key)
        is_older = known is not None and _version(known) > _version(thing)
        if is_older or metadata["uid"] in self._gone:
            return []
        out = []
        if known and known["metadata"]["uid"] != metadata["uid"]:
            out.append(self._delete(key, at))
        self._known[key] = thing
        return [*out, Seen(at, what, thing, by, request)]


def _version(thing: dict) -> int:
    return int(thing["metadata"]["resourceVersion"])


def _is_done(event: dict) -> bool:
    """Returns true for a request that changed an object of KINDS, or one of its parts."""
    about = event.get("objectRef", {})
    code = event.get("responseStatus", {}).get("code", 0)
    is_dry_run = "dryRun=" in event.get("requestURI", "")
    known = (about.get("apiGroup", ""), about.get("resource", "")) in KINDS
    return (
        event.get("stage") == "ResponseComplete"
        and event.get("level") == "RequestResponse"
        and 200 <= code < 300
        and known
        and not is_dry_run
        and about.get("subresource", "") in ("", "status")
    )
