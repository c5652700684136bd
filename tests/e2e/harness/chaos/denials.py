# SPDX-License-Identifier: Apache-2.0
"""The API server refuses for some seconds: a rule is missing from a cachewarm role, a policy
refuses cachewarm's writes, the API server is down, or the webhook of one tenant does not answer."""

import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..definitions import SYSTEM
from ..kubectl import KubectlError
from ..waiting import wait_for
from . import excuses
from .scene import Scene

_POLICY = "chaos.cachewarm.test"
_ROLES = (
    ("clusterrole", "cachewarm-operator"),
    ("clusterrole", "cachewarm-operator"),
    ("clusterrole", "cachewarm-agent"),
    ("role", "cachewarm-operator"),
)
# Writes that the policy refuses: API group, resource, operations.
_WRITES = (
    ("", "pods", ["UPDATE"]),
    ("cachewarm.io", "cachewarmups/status", ["UPDATE"]),
    ("cachewarm.io", "nodecaches", ["CREATE", "UPDATE"]),
    ("cachewarm.io", "nodecaches/status", ["UPDATE"]),
    ("batch", "jobs", ["CREATE"]),
    ("events.k8s.io", "events", ["CREATE", "UPDATE"]),
)
_POLICY_KINDS = ("validatingadmissionpolicybinding", "validatingadmissionpolicy")
_WEBHOOK_KIND = "validatingwebhookconfiguration"
# Behind a webhook that answers no request within 10 s, pods are released this much later.
_BEHIND_WEBHOOK_SECONDS = 30.0
# A change of roles or policies is obeyed a moment after it was made.
_OBEYED_SECONDS = 1.0


class Denials:
    """put_right() restores everything that was changed, also after an error."""

    def __init__(self, scene: Scene):
        self._scene = scene
        self._system = scene.product.kubectl.within(SYSTEM)
        self._rules = {role: self._read(role) for role in set(_ROLES)}

    def put_right(self) -> None:
        for (kind, name), rules in self._rules.items():
            self._insist(lambda k=kind, n=name, r=rules: self._system.patch(k, n, {"rules": r}))
        for kind in (*_POLICY_KINDS, _WEBHOOK_KIND):
            self._insist(lambda k=kind: self._system.delete(k, _POLICY))

    def take_a_rule(self, chance: random.Random, wait: Callable[[float], object]) -> str:
        role = chance.choice(_ROLES)
        rules = self._rules[role]
        taken = chance.choice(rules)
        excused = role[1] == "cachewarm-operator" and "pods" in taken["resources"]
        with self._excuse(excused):
            self._system.patch(*role, {"rules": [rule for rule in rules if rule is not taken]})
            wait(chance.uniform(2, 10))
            self._insist(lambda: self._system.patch(*role, {"rules": rules}))
        return f"{' '.join(role)}: {' '.join(taken['resources'])}"

    def refuse_writes(self, chance: random.Random, wait: Callable[[float], object]) -> str:
        group, resource, operations = chance.choice(_WRITES)
        with self._excuse(resource == "pods"):
            self._system.apply(*_policy(group, resource, operations))
            wait(chance.uniform(2, 10))
            for kind in _POLICY_KINDS:
                self._insist(lambda k=kind: self._system.delete(k, _POLICY))
        return f"{resource} {' '.join(operations)}"

    def restart_api_server(self, chance: random.Random, wait: Callable[[float], object]) -> str:
        with self._scene.power, self._excuse(True):
            self._scene.cluster.verb("apiserver-down")
            wait(chance.uniform(0, 5))
            self._scene.cluster.verb("apiserver-up")
        return "API server"

    def hang_webhook(self, chance: random.Random, wait: Callable[[float], object]) -> str:
        """Creates and updates of pods of the tenant last 10 s each. The other namespace must not
        notice."""
        tenant = self._scene.tenant.kubectl
        span = self._scene.excuses.begin(time.time(), excuses.namespace(tenant.namespace))
        with socket.create_server(("127.0.0.1", 0)) as silent:
            try:
                self._system.apply(_webhook(tenant.namespace, silent.getsockname()[1]))
                size = chance.choice((0, 2, 4, 6))
                tenant.scale("deployment", self._scene.tenant.workload.name, size)
                wait(chance.uniform(10, 30))
            finally:
                self._insist(lambda: self._system.delete(_WEBHOOK_KIND, _POLICY))
                self._scene.excuses.end(span, time.time() + _BEHIND_WEBHOOK_SECONDS)
        return f"{tenant.namespace}, {size} pods"

    @contextmanager
    def _excuse(self, needed: bool) -> Iterator[None]:
        if not needed:
            yield
            return
        span = self._scene.excuses.begin(time.time())
        try:
            yield
        finally:
            self._scene.excuses.end(span, time.time() + _OBEYED_SECONDS)

    def _read(self, role: tuple[str, str]) -> list[dict]:
        return self._system.get(*role)["rules"]

    def _insist(self, act: Callable[[], object]) -> None:
        def done() -> bool:
            act()
            return True

        wait_for("what was denied is allowed again", done, 60)


def _policy(group: str, resource: str, operations: list[str]) -> tuple[dict, dict]:
    matched = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": operations,
        "resources": [resource],
    }
    by_cachewarm = f"request.userInfo.username.startsWith('system:serviceaccount:{SYSTEM}:')"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": _POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [matched]},
            "matchConditions": [{"name": "cachewarm", "expression": by_cachewarm}],
            "validations": [{"expression": "false", "message": "refused by the chaos"}],
        },
    }
    binding = {
        **policy,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": _POLICY, "validationActions": ["Deny"]},
    }
    return policy, binding


def _webhook(namespace: str, port: int) -> dict:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["pods"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": _POLICY},
        "webhooks": [
            {
                "name": _POLICY,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "timeoutSeconds": 10,
                "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [rule],
            }
        ],
    }
