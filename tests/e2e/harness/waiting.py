# SPDX-License-Identifier: Apache-2.0
"""Waiting for a condition with a deadline; what the cluster looked like is part of the failure."""

import time
from collections.abc import Callable

from .kubectl import Kubectl, KubectlError
from .summary import COLUMNS, one_line, summarize

# Deadlines are for a quiet 2-core machine; several clusters share one when all tests run.
DEADLINE_FACTOR = 3.0
POLL_SECONDS = 0.25


def wait_for(
    what: str, condition: Callable[[], object], seconds: float, kubectl: Kubectl | None = None
):
    """Returns the first true value of `condition`. An answer that kubectl could not get counts as
    not yet; when the deadline passes, the last such error and a picture of the namespace are
    shown."""
    seconds *= DEADLINE_FACTOR
    deadline = time.monotonic() + seconds
    error = None
    while True:
        try:
            value = condition()
            if value:
                return value
        except KubectlError as failed:
            error = failed
        if time.monotonic() > deadline:
            break
        time.sleep(POLL_SECONDS)
    picture = diagnose(kubectl) if kubectl else ""
    raise AssertionError(f"not after {seconds:.0f} s: {what}\n{error or ''}\n{picture}")


def holds_for(what: str, condition: Callable[[], object], seconds: float) -> None:
    """The condition is true now and at every look until `seconds` have passed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), f"no longer: {what}"
        time.sleep(POLL_SECONDS)


def diagnose(kubectl: Kubectl) -> str:
    """Pods, events, our objects and the logs of our programs, as kubectl prints them; at the end,
    where CI does not cut, the causes in few lines."""
    system = kubectl.within("cachewarm-system")
    looks = [
        (kubectl, ("get", "deployments,jobs,pods", "-o", "wide")),
        (kubectl, ("get", "events", "--sort-by=.lastTimestamp")),
        (kubectl, ("get", "cachewarmups", "-o", "yaml")),
        (kubectl, ("get", "nodecaches", "-o", "yaml")),
        (kubectl, ("get", "nodes")),
        (system, ("get", "pods", "-o", "wide")),
        (
            system,
            ("logs", "-l", "app.kubernetes.io/component=operator", "--tail=30", "--prefix"),
        ),
        (
            system,
            ("logs", "-l", "app.kubernetes.io/component=agent", "--tail=30", "--prefix"),
        ),
    ]
    parts = []
    for client, words in looks:
        try:
            text = client.run(*words, check=False, seconds=20).strip()
        except KubectlError as failed:
            text = str(failed)
        if text:
            parts.append(f"--- kubectl -n {client.namespace} {' '.join(words)}\n{text}")
    return "\n".join([*parts, "--- summary", *_summary(kubectl, system)])


def _summary(kubectl: Kubectl, system: Kubectl) -> list[str]:
    """Of the namespace of the test and of that of cachewarm."""
    objects: dict[str, list[dict]] = {}
    failures = {}
    for kind, clients in (
        ("nodes", [kubectl]),
        ("events", [system, kubectl]),
        ("pods", [system, kubectl]),
        ("cachewarmups", [kubectl]),
    ):
        for client in clients:
            try:
                objects.setdefault(kind, []).extend(client.list(kind))
            except KubectlError as failed:
                failures[kind] = one_line(f"{kind}: {failed}")[:COLUMNS]
    return [*failures.values(), *summarize(objects)]
