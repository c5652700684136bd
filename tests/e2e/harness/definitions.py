# SPDX-License-Identifier: Apache-2.0
"""Definitions, rights and policies of manifests/install.yaml, without the programs."""

import json

import yaml

from .cluster import MANIFEST, REPOSITORY
from .installation import wait_established
from .kubectl import Kubectl, KubectlError
from .waiting import wait_for

SYSTEM = "cachewarm-system"
OPERATOR = f"system:serviceaccount:{SYSTEM}:cachewarm-operator"
AGENT = f"system:serviceaccount:{SYSTEM}:cachewarm-agent"
# Kinds that only the programs need.
_LEFT_OUT = ("Deployment", "DaemonSet", "CronJob", "ConfigMap", "PodDisruptionBudget")


def objects() -> dict[tuple[str, str], dict]:
    """Objects of install.yaml by (kind, name)."""
    text = MANIFEST.read_text()
    things = [thing for thing in yaml.safe_load_all(text) if thing]
    return {(thing["kind"], thing["metadata"]["name"]): thing for thing in things}


def apply(admin: Kubectl) -> None:
    """Idempotent, also where the whole product is installed."""
    admin = admin.within(SYSTEM)
    things = objects().values()
    first = [o for o in things if o["kind"] in ("Namespace", "CustomResourceDefinition")]
    admin.apply(*first, server_side=True)
    wait_established(admin, first[1:])
    admin.apply(
        *(o for o in things if o not in first and o["kind"] not in _LEFT_OUT), server_side=True
    )
    # A policy that was just made is not obeyed at once.
    wait_for(
        "the write policies are in force",
        lambda: "writers.cachewarm.io" in refusal(admin, nodecache("nobody")),
        30,
    )


def golden(name: str) -> dict:
    """An object with every field set, as the programs' encoder writes it."""
    return json.loads((REPOSITORY / "tests/golden/api" / name).read_text())


def refusal(client: Kubectl, thing: dict, *flags: str) -> str:
    """Returns why the API server refuses to create `thing`, or "". Creates nothing."""
    if not flags:
        try:
            client.create(thing, "--dry-run=server")
        except KubectlError as error:
            return str(error)
        return ""
    words = ("create", "--dry-run=server", "-f", "-", *flags)
    return answer(client, *words, given=thing)


def answer(client: Kubectl, *words: str, given: object = None) -> str:
    """Why kubectl was refused; "" when it was not."""
    try:
        client.run(*words, text_in=None if given is None else json.dumps(given))
    except KubectlError as error:
        return str(error)
    return ""


# "kubectl patch" reads an object before it patches it. The programs do not, and have no such right.
READERS = "cachewarm.test/readers"
READER = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "cachewarm-test-reader"},
    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}],
}
READER_BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "cachewarm-test-reader"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cachewarm-test-reader",
    },
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": READERS}
    ],
}


def impersonating(client: Kubectl, user: str, *flags: str) -> Kubectl:
    """kubectl as `user`. A service account may also get any single object, for "kubectl patch"."""
    other = client.within(client.namespace)
    other._base = [*client._base, f"--as={user}", *flags]
    if user.startswith("system:serviceaccount:"):
        client.apply(READER, READER_BINDING)
        other._base += [f"--as-group={group}" for group in (
            "system:serviceaccounts", "system:authenticated", READERS)]
    return other


def warmup(name: str = "llama", **spec: object) -> dict:
    spec = spec or {"selector": {"matchLabels": {"app": "llama"}}}
    return {
        "apiVersion": "cachewarm.io/v1alpha1",
        "kind": "CacheWarmup",
        "metadata": {"name": name},
        "spec": spec,
    }


def nodecache(name: str, **parts: object) -> dict:
    return {
        "apiVersion": "cachewarm.io/v1alpha1",
        "kind": "NodeCache",
        "metadata": {"name": name},
        **parts,
    }
