# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the cluster tests. The cluster is reused when it runs and is left running."""

import re
import uuid
from contextlib import contextmanager

import pytest

from harness import pods
from harness.cluster import NODES, Cluster
from harness.kubectl import Kubectl
from harness.product import H100, Product
from harness.waiting import diagnose, wait_for

# node-a and node-b are what they are, node-c plays another GPU type by its facts file.
FACTS = {"node-c": {"gpuType": H100}}


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    running = Cluster()
    running.up(*NODES)
    return running


@contextmanager
def _namespace(cluster: Cluster, title: str):
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")
    name = f"{slug}-{uuid.uuid4().hex[:5]}"
    client: Kubectl = cluster.kubectl().within(name)
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wait_for("default ServiceAccount", lambda: client.get("serviceaccount", "default"), 30)
    yield client
    client.delete("namespace", name, "--wait=false")
    client.delete_all_pods()
    wait_for("the test's pods are gone", lambda: not client.list("pods"), 60, client)


@pytest.fixture
def kubectl(cluster: Cluster, request):
    """A kubectl for a namespace of the test's own, which is gone, pods included, when the test
    ends."""
    with _namespace(cluster, request.node.name) as client:
        yield client


@pytest.fixture(scope="module")
def shared(cluster: Cluster, request):
    """The same for all tests of a file, which build on one another in their order."""
    with _namespace(cluster, request.module.__name__.rpartition(".")[2]) as client:
        yield client


def _put_right(cluster: Cluster) -> None:
    """Undoes changes that an interrupted test may have left behind."""
    if not cluster.registry_is_free():
        cluster.verb("registry-up")
        cluster.verb("registry-throttle", "unlimited")
    for node in NODES:
        cluster.remove_in_node(node, "/etc/cachewarm-test/isa")


@pytest.fixture(scope="session")
def installation(cluster: Cluster) -> Product:
    _put_right(cluster)
    product = Product(cluster)
    product.install(facts=FACTS)
    return product


@pytest.fixture
def product(installation: Product, cluster: Cluster) -> Product:
    """One installation serves all tests; it is whole at the start of each."""
    _put_right(cluster)
    nodes = cluster.kubectl().list("nodes")
    off = {pods.name(node) for node in nodes if not pods.ready(node)}
    missing = set(NODES) - {pods.name(node) for node in nodes}
    for node in off | missing:
        cluster.verb("node-up", node)
    installation.declare_all(FACTS)
    installation.wait_ready()
    return installation


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Prints a failure in one line when it happens. At the end it shows the state of the test's
    namespace, unless the failure's own text already does."""
    outcome = yield
    report = outcome.get_result()
    terminal = item.config.pluginmanager.get_plugin("terminalreporter")
    if report.failed and terminal:
        first = str(call.excinfo.value).strip().partition("\n")[0]
        terminal.write_line(f"\n{item.nodeid} {report.when}: {call.excinfo.typename}: {first}")
    arguments = getattr(item, "funcargs", {})
    client = arguments.get("kubectl") or arguments.get("shared")
    if (
        report.when == "call"
        and report.failed
        and client
        and "--- kubectl" not in str(call.excinfo.value)
    ):
        report.sections.append(("cluster", diagnose(client)))
