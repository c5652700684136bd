# SPDX-License-Identifier: Apache-2.0
"""The audit log of the API server: its policy, and where its files are."""

import json
from pathlib import Path

from .settings import Settings

# The service accounts of cachewarm. Requests by impersonation count as those of the administrator.
_ACCOUNTS = {"level": "Metadata", "userGroups": ["system:serviceaccounts:cachewarm-system"]}
# With the answers of the API server, so that a reader can follow these objects.
_OBJECTS = {
    "level": "RequestResponse",
    "verbs": ["create", "update", "patch", "delete", "deletecollection"],
    "resources": [
        {"group": "", "resources": ["pods", "pods/status", "nodes", "nodes/status"]},
        {"group": "batch", "resources": ["jobs"]},
        {"group": "cachewarm.io", "resources": ["nodecaches"]},
    ],
}
RULES = {"accounts": (_ACCOUNTS,), "objects": (_OBJECTS, _ACCOUNTS)}


def policy(audit: str) -> dict:
    """Requests that match no rule are not logged."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        "rules": list(RULES[audit]),
    }


def folder(settings: Settings) -> Path:
    """Of the log, and of its older parts: a part ends at 100 MB."""
    return settings.state / "audit"


def flags(settings: Settings) -> list[str]:
    """Writes the policy. Returns the arguments of the API server, which adds to an existing log."""
    folder(settings).mkdir(parents=True, exist_ok=True)
    path = settings.state / "audit-policy.json"
    path.write_text(json.dumps(policy(settings.audit)), encoding="utf-8")
    return [f"--audit-policy-file={path}", f"--audit-log-path={folder(settings)}/audit.log"]
