# SPDX-License-Identifier: Apache-2.0
"""Without an operator, the CronJob and the CLI release held pods, and not too early; an uninstall
leaves no pod held. (main_job/test_gates.py tests that pods of warm revisions are not held without
an operator.)"""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from harness import installation, pods
from harness.cluster import REPOSITORY, Cluster
from harness.definitions import impersonating
from harness.gates import held_pod, hold_everything, small_pod
from harness.installation import NAMESPACE
from harness.kubectl import Kubectl, KubectlError
from harness.product import Product, configuration
from harness.steps import until_ready, until_released
from harness.warmup import gated, released

RELEASE = f"system:serviceaccount:{NAMESPACE}:cachewarm-release"
PROGRAM = REPOSITORY / "build" / "release" / "cli" / "cachewarm"
LABELS = {"app": "left-behind"}


@pytest.fixture(scope="module")
def alone(installation: Product):
    with installation.without_operators():
        yield installation


@pytest.fixture
def no_cron_job(alone: Product):
    with alone.without_cron_job():
        yield


@pytest.fixture(scope="module")
def outside(cluster: Cluster, shared: Kubectl, tmp_path_factory) -> Path:
    """A kubeconfig of an identity that may get, list and patch pods of one namespace."""
    shared.run("create", "serviceaccount", "on-call")
    shared.run("create", "role", "on-call", "--verb=get,list,patch", "--resource=pods")
    account = f"--serviceaccount={shared.namespace}:on-call"
    shared.run("create", "rolebinding", "on-call", "--role=on-call", account)
    config = yaml.safe_load((cluster.state / "admin.kubeconfig").read_text())
    config["users"][0]["user"] = {"token": shared.run("create", "token", "on-call").strip()}
    config["contexts"][0]["context"]["namespace"] = shared.namespace
    path = tmp_path_factory.mktemp("on-call") / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def cachewarm(kubeconfig: Path | str, *words: str) -> subprocess.CompletedProcess:
    command = [str(PROGRAM), *words, f"--kubeconfig={kubeconfig}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=180)


class TestWithoutOperator:
    def test_cron_job_releases_only_pods_past_their_deadline(
        self, shared: Kubectl, alone: Product, no_cron_job
    ):
        shared.apply(
            held_pod("due", until=-10, others=("example.com/other",)),
            held_pod("not-due", until=1800),
            held_pod("unnoted"),
        )
        log = alone.run_cron_job_now("release-now")
        assert f"{shared.namespace}/due" in log
        due = shared.get("pod", "due")
        assert pods.gates(due) == ["example.com/other"]
        assert released(due) == "ReleasedAtDeadline"
        assert gated(shared.get("pod", "not-due")) and gated(shared.get("pod", "unnoted"))
        shared.kill_pod("due")

    def test_cron_job_identity_cannot_change_other_pod_fields(
        self, shared: Kubectl, alone: Product
    ):
        shared.apply(held_pod("fixed", others=("example.com/other",)), small_pod("running"))
        cron = impersonating(shared, RELEASE)
        gates = "/spec/schedulingGates"
        note = "/metadata/annotations/cachewarm.io~1"
        refused = [
            [{"op": "add", "path": "/metadata/labels/x", "value": "y"}],
            [{"op": "remove", "path": f"{gates}/0"}],
            [{"op": "remove", "path": gates}],
            [{"op": "remove", "path": f"{note}warmup"}],
            [{"op": "add", "path": f"{note}held-until", "value": "x"}],
            [
                {"op": "remove", "path": f"{gates}/1"},
                {"op": "add", "path": "/spec/nodeSelector", "value": {"a": "b"}},
            ],
            [{"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"]}],
            [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil:1"}],
        ]
        for patch in refused:
            with pytest.raises(KubectlError, match="cachewarm release"):
                cron.patch("pod", "fixed", patch)
        for words in (["delete", "pod", "fixed"], ["get", "secrets"], ["get", "cachewarmups"]):
            with pytest.raises(KubectlError, match="orbidden"):
                cron.run(*words)
        right = [
            {"op": "remove", "path": f"{gates}/1"},
            {"op": "add", "path": f"{note}released", "value": "ReleasedAtDeadline"},
        ]
        cron.patch("pod", "fixed", right)
        assert pods.gates(shared.get("pod", "fixed")) == ["example.com/other"]
        shared.kill_pod("fixed")

    def test_cli_releases_pods_with_pod_rights_only(
        self, shared: Kubectl, alone: Product, outside: Path
    ):
        shared.apply(held_pod("one"), held_pod("two", until=1800))
        dry_run = cachewarm(outside, "release", "--all", "--dry-run", "-o", "json")
        assert dry_run.returncode == 0, dry_run.stderr
        results = {pod["pod"]: pod["result"] for pod in json.loads(dry_run.stdout)["pods"]}
        assert {"one", "two"} <= set(results) and set(results.values()) == {"would release"}
        assert gated(shared.get("pod", "one"))

        single = cachewarm(outside, "release", "one")
        assert single.returncode == 0, single.stderr
        assert released(until_ready(shared, {"metadata": {"name": "one"}})) == "ReleasedManually"
        assert gated(shared.get("pod", "two"))

        late = cachewarm(outside, "release", "two", "--past-deadline")
        assert late.returncode == 0 and "1 not due yet" in late.stderr
        assert gated(shared.get("pod", "two"))
        again = cachewarm(outside, "release", "one", "two")
        assert again.returncode == 0, again.stderr
        assert "not held" in again.stdout
        until_ready(shared, {"metadata": {"name": "two"}})

        assert cachewarm(outside, "release", "nobody").returncode == 4
        elsewhere = cachewarm(outside, "release", "--all", "-A")
        assert elsewhere.returncode == 1 and "forbidden" in elsewhere.stderr

    def test_cron_job_releases_a_pod_without_deadline_after_a_minute(
        self, shared: Kubectl, alone: Product
    ):
        shared.apply(held_pod("forgotten"), held_pod("patient", until=1800))
        free = until_released(shared, {"metadata": {"name": "forgotten"}}, 150)
        assert released(free) == "ReleasedAtDeadline"
        assert float(pods.annotation(free, "cachewarm.io/held-seconds")) >= 65
        assert gated(shared.get("pod", "patient"))
        shared.kill_pod("patient")


@pytest.fixture(scope="class")
def removed(installation: Product, alone: Product):
    yield installation
    installation.install()


class TestUninstall:
    """Last: what it removes is put back for the tests of other files."""

    def test_manual_uninstall_releases_held_pods_and_keeps_running_ones(
        self, shared: Kubectl, removed: Product, cluster: Cluster
    ):
        shared.apply(small_pod("running"))
        running = until_ready(shared, {"metadata": {"name": "running"}})
        hold_everything(shared, LABELS)
        shared.apply(small_pod("waiting", LABELS))
        assert gated(shared.get("pod", "waiting"))
        gone = cachewarm(
            cluster.state / "admin.kubeconfig", "release", "--all", "-A", "--remove-policy"
        )
        assert gone.returncode == 0, gone.stderr
        free = until_ready(shared, {"metadata": {"name": "waiting"}})
        assert released(free) == "ReleasedHoldingDisabled"
        assert not gated(shared.create(small_pod("later", LABELS)))
        things = installation.objects(configuration(), lambda program: installation.Image("x"))
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": things})
        removed.kubectl.run("delete", "--ignore-not-found", "-f", "-", text_in=text, seconds=120)
        still = shared.get("pod", "running")
        assert still["metadata"]["uid"] == running["metadata"]["uid"]
        assert pods.ready(shared.get("pod", "waiting"))
        assert not gated(shared.create(small_pod("much-later", LABELS)))

    def test_helm_uninstall_releases_every_pod_first(
        self, shared: Kubectl, removed: Product, cluster: Cluster
    ):
        chart = Helm(cluster)
        chart.install()
        try:
            removed.scale_operator(0)
            hold_everything(shared, LABELS)
            shared.apply(small_pod("of-helm", LABELS))
            assert gated(shared.get("pod", "of-helm"))
        finally:
            chart.uninstall()
        free = until_ready(shared, {"metadata": {"name": "of-helm"}})
        assert released(free) == "ReleasedHoldingDisabled"
        assert not gated(shared.create(small_pod("after-helm", LABELS)))
        system = removed.kubectl
        for kind in ("cronjobs", "jobs", "deployments", "daemonsets"):
            assert system.list(kind) == [], kind
        for kind in ("mutatingadmissionpolicies", "clusterroles"):
            selector = "app.kubernetes.io/name=cachewarm"
            assert system.list(kind, selector) == [], kind


class Helm:
    """The chart with the images that are in the nodes."""

    def __init__(self, cluster: Cluster):
        self.program = cluster.helm()
        self.kubeconfig = f"--kubeconfig={cluster.state / 'admin.kubeconfig'}"

    def install(self) -> None:
        values = []
        for program in installation.PROGRAMS:
            image = f"{program}.image"
            values += ["--set", f"{image}.repository=localhost/cachewarm-{program}"]
            values += ["--set", f"{image}.tag=dev,{image}.pullPolicy=Never"]
        chart = str(REPOSITORY / "charts" / "cachewarm")
        self.run("install", "cachewarm", chart, "--create-namespace", "--wait", *values)

    def uninstall(self) -> None:
        self.run("uninstall", "cachewarm", "--wait")

    def run(self, *words: str) -> None:
        command = [self.program, *words, f"--namespace={NAMESPACE}", self.kubeconfig]
        done = subprocess.run([*command, "--timeout=150s"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
