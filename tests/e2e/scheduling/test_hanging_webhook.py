# SPDX-License-Identifier: Apache-2.0
"""A webhook of one namespace does not answer, so no pod there can be released: the pods of another
namespace are planned, held and released as always."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from harness import pods
from harness.gates import update_probe
from harness.kubectl import Kubectl
from harness.product import Product
from harness.sleeper import Sleeper
from harness.steps import accept, until_released
from harness.waiting import wait_for
from harness.warmup import gated

HOLD_SECONDS = 5
GATE = {"mode": "Hold", "maxHoldSeconds": HOLD_SECONDS}
# A pod is released at most this long after its deadline while an operator runs.
LATE_SECONDS = 5


def configuration(name: str, namespace: str, port: int) -> dict:
    """Sends updates of pods of the namespace to a port that accepts connections and is silent."""
    updates = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["pods"],
    }
    webhook = {
        "name": "silent.example.com",
        "clientConfig": {"url": f"https://10.100.0.1:{port}/"},
        "rules": [updates],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }


@contextmanager
def silent_webhook(kubectl: Kubectl) -> Iterator[None]:
    """Updates of pods in the namespace fail after 10 s while it lasts."""
    may_update = update_probe(kubectl)
    name = f"silent.{kubectl.namespace}"
    with socket.create_server(("10.100.0.1", 0), backlog=1024) as listener:
        try:
            kubectl.apply(configuration(name, kubectl.namespace, listener.getsockname()[1]))
            wait_for("updates hang", lambda: not may_update(), 60, kubectl)
            yield
        finally:
            kubectl.delete("validatingwebhookconfiguration", name)


def gated_pods(kubectl: Kubectl, app: str, count: int) -> list[dict]:
    def made() -> list[dict]:
        found = pods.of(kubectl, app)
        return found if len(found) == count else []

    return wait_for(f"{count} pods of {app}", made, 30, kubectl)


def test_hanging_webhook_of_a_namespace_delays_no_pod_of_another(
    kubectl: Kubectl, shared: Kubectl, product: Product
):
    tenant, healthy = Sleeper(name="tenant"), Sleeper(name="healthy")
    accept(kubectl, tenant, gate=GATE).wait_admission(tenant.pod("probe-of-policy"))
    with silent_webhook(kubectl):
        kubectl.scale("deployment", tenant.name, 20)
        stuck = gated_pods(kubectl, tenant.name, 20)
        assert all(gated(pod) for pod in stuck), "mode Hold holds a cold workload"

        accept(shared, healthy, gate=GATE).wait_admission(healthy.pod("probe-of-policy"))
        shared.scale("deployment", healthy.name, 3)
        for pod in gated_pods(shared, healthy.name, 3):
            free = until_released(shared, pod, 30)
            held = float(pods.annotation(free, "cachewarm.io/held-seconds") or 0)
            assert held <= HOLD_SECONDS + LATE_SECONDS
        still = {pods.name(pod) for pod in pods.of(kubectl, tenant.name) if gated(pod)}
        assert still == {pods.name(pod) for pod in stuck}, "nobody can release them"
    for pod in stuck:
        until_released(kubectl, pod, 60)
