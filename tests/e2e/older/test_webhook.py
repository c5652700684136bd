# SPDX-License-Identifier: Apache-2.0
"""On a Kubernetes without admission policies the operators serve the webhook; everything else works
as on newer versions."""

import base64
import json
import threading

import pytest

from harness import admission_cases, lease, pods, steps
from harness.cluster import MANIFEST
from harness.model_server import ModelServer
from harness.waiting import wait_for
from harness.warmup import Warmup, gated, injected, released

CASES = admission_cases.read()


def configuration(system) -> dict:
    return system.get("mutatingwebhookconfiguration", "cachewarm.io")


def announced(system) -> str:
    bundle = configuration(system)["webhooks"][0]["clientConfig"].get("caBundle", "")
    return base64.b64decode(bundle).decode()


def entry(system, name: str) -> str:
    secret = system.get("secret", "cachewarm-webhook") or {}
    return base64.b64decode(secret.get("data", {}).get(name, "")).decode()


@pytest.fixture(scope="module")
def serving(installation):
    """kubectl for the operators' namespace; both replicas serve the webhook."""
    system = installation.kubectl

    def all_serve() -> bool:
        text = [system.logs(pods.name(pod)) for pod in installation.pods("operator")]
        return len(text) == 2 and all('"webhook served"' in each for each in text)

    wait_for("both operators serve the webhook", all_serve, 120, system)
    return system


def test_install_file_has_only_kinds_that_the_server_knows(cluster):
    admin = cluster.kubectl()
    version = json.loads(admin.run("version", "-o", "json"))["serverVersion"]
    assert version["minor"] == "34"
    known = json.loads(admin.run("get", "--raw", "/apis/admissionregistration.k8s.io/v1"))
    assert "mutatingadmissionpolicies" not in [each["name"] for each in known["resources"]]
    assert "MutatingAdmissionPolicy" not in MANIFEST.read_text()


def test_operator_creates_and_registers_its_certificate(serving):
    assert "BEGIN CERTIFICATE" in announced(serving)
    assert announced(serving) == entry(serving, "ca.crt")
    assert "PRIVATE KEY" in entry(serving, "tls.key")


def test_operator_metrics_show_the_admission_mode(serving, installation):
    text = installation.metrics("operator")
    assert 'cachewarm_admission_mode_info{mode="webhook"} 1' in text
    assert 'cachewarm_admission_mode_info{mode="policy"} 0' in text


def test_webhook_injects_pods_of_a_warm_workload(serving, product, kubectl):
    server = ModelServer(name="llama", nodes=("node-a", "node-b"))
    steps.warm_up(kubectl, server)
    second = steps.add_pod(kubectl, server.name)
    assert injected(second)
    assert not gated(second)
    pods.wait_ready(kubectl, server.name, 2, 240)
    Warmup(kubectl, server.name).wait_counted({"builder": 1, "hit": 1})


def test_cold_pods_are_held_and_released(serving, product, kubectl):
    server = ModelServer(name="cold", nodes=("node-a", "node-b"))
    steps.accept(kubectl, server, gate={"mode": "Hold", "maxHoldSeconds": 20})
    first = steps.add_pod(kubectl, server.name)
    assert injected(first)
    assert released(steps.until_released(kubectl, first)) == "ReleasedForBuild"


@pytest.fixture(scope="class")
def table(serving, cluster):
    with lease.taken(serving), admission_cases.Table(cluster.kubectl(), CASES) as tried:
        yield tried


class TestAdmissionTable:
    """Nobody leads meanwhile: the warmups of the table are the test's."""

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    def test_webhook_matches_the_admission_table(self, table, case):
        assert table.outcome(case) in table.wanted(case)


class Asking:
    """Asks for a pod, by dry run, again and again while it is entered. Several do so at once: the
    API server has connections to both replicas then."""

    def __init__(self, kubectl, pod: dict):
        self._kubectl = kubectl.within(kubectl.namespace)
        self._pods = 20 * [pod]
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(3)]
        self.answers: list[bool] = []  # whether it would have had our directory

    def __enter__(self) -> "Asking":
        for thread in self._threads:
            thread.start()
        wait_for("the first answer", lambda: self.answers, 30)
        return self

    def __exit__(self, *unused) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._done.is_set():
            made = admission_cases.dry_runs(self._kubectl, self._pods)
            self.answers += map(injected, made)


@pytest.fixture
def asking(serving, product, kubectl):
    server = ModelServer(name="asked", nodes=("node-a", "node-b"))
    pod = server.pod("probe")
    steps.accept(kubectl, server, gate={"mode": "Never"})
    # Each replica sees it in its own time.
    wait_for("both operators have looked",
             lambda: all(map(injected, admission_cases.dry_runs(kubectl, 20 * [pod]))), 60, kubectl)
    return Asking(kubectl, pod)


def settled(installation, before: list[dict]) -> bool:
    """Two operators are ready, and none of `before` is what it was."""

    def starts(operators: list[dict]) -> set:
        return {(each["metadata"]["uid"], pods.restarts(each)) for each in operators}

    now = installation.pods("operator")
    return len(now) == 2 and all(map(pods.ready, now)) and not starts(now) & starts(before)


def test_every_new_pod_is_injected_during_an_operator_rollout(serving, installation, asking):
    before = installation.pods("operator")
    with asking:
        serving.run("rollout", "restart", "deployment/cachewarm-operator")
        wait_for("both are replaced", lambda: settled(installation, before), 180, serving)
    assert asking.answers.count(False) == 0, f"of {len(asking.answers)}"


def test_every_new_pod_is_injected_while_a_deposed_leader_restarts(
    serving, installation, asking
):
    leader = installation.leader()
    before = [each for each in installation.pods("operator") if pods.name(each) == leader]
    with asking:
        with lease.taken(serving):
            wait_for("it has restarted", lambda: settled(installation, before), 120, serving)
    assert asking.answers.count(False) == 0, f"of {len(asking.answers)}"


def test_deleted_certificates_are_created_again(serving, product):
    before = announced(serving)
    serving.run("patch", "secret", "cachewarm-webhook", "--type=json",
                "-p", '[{"op":"remove","path":"/data"}]')
    wait_for("another authority is announced",
             lambda: announced(serving) not in ("", before), 120, serving)
    wait_for("it is the one of the Secret",
             lambda: announced(serving) == entry(serving, "ca.crt"), 60, serving)


def test_pods_start_without_the_cache_without_operators(serving, product, kubectl):
    server = ModelServer(name="orphan", nodes=("node-a", "node-b"))
    warmup = steps.accept(kubectl, server, gate={"mode": "Hold", "maxHoldSeconds": 20})
    warmup.wait_admission(server.pod("probe"))
    product.scale_operator(0)
    try:
        pod = steps.add_pod(kubectl, server.name)
        assert not injected(pod) and not gated(pod)
        pods.wait_ready(kubectl, server.name, 1, 120)
    finally:
        product.scale_operator(2)


def test_ready_condition_reports_a_missing_webhook(serving, product, kubectl):
    server = ModelServer(name="unseen", nodes=("node-a", "node-b"))
    steps.accept(kubectl, server, gate={"mode": "Hold", "maxHoldSeconds": 20})
    removed = configuration(serving)
    serving.delete("mutatingwebhookconfiguration", "cachewarm.io")
    try:
        seen = Warmup(kubectl, server.name).wait_condition("Ready", "False", "NoAdmission", 90)
        assert "install-webhook.yaml" in seen["message"]
        pod = steps.add_pod(kubectl, server.name)
        assert not injected(pod)
        pods.wait_ready(kubectl, server.name, 1, 120)
    finally:
        for field in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
            removed["metadata"].pop(field, None)
        serving.apply(removed)
    Warmup(kubectl, server.name).wait_condition("Ready", "True", "Injecting", 90)
