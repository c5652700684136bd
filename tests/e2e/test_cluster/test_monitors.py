# SPDX-License-Identifier: Apache-2.0
"""The translation of monitors into scrape configurations, on those of the chart. No cluster."""

import subprocess
from pathlib import Path

import pytest
import yaml
from harness import monitors, prometheus
from harness.cluster import Cluster

NAMESPACE = "cachewarm-system"


@pytest.fixture(scope="module")
def shipped() -> dict[str, dict]:
    return {thing["kind"]: thing for thing in monitors.rendered(Cluster().helm(), NAMESPACE)}


def pod(name: str, component: str, node: str = "node-a") -> dict:
    labels = {"app.kubernetes.io/name": "cachewarm", "app.kubernetes.io/component": component}
    ports = [{"name": "metrics", "containerPort": 8080}, {"containerPort": 6379}]
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": component, "ports": ports}]},
        "status": {"podIP": "10.244.1.7", "phase": "Running"},
    }


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor"])
def test_job_keeps_the_settings_of_its_monitor(shipped: dict, tmp_path: Path, kind: str):
    (job,) = monitors.jobs(shipped[kind], tmp_path)
    assert job.config["honor_labels"] is True
    assert job.config["scrape_interval"] == "30s"
    assert job.of_services == (kind == "ServiceMonitor")


def test_prometheus_accepts_the_jobs(shipped: dict, tmp_path: Path):
    kinds = ("ServiceMonitor", "PodMonitor")
    configs = [job.config for kind in kinds for job in monitors.jobs(shipped[kind], tmp_path)]
    file = tmp_path / "prometheus.yaml"
    file.write_text(yaml.safe_dump({"scrape_configs": configs}))
    promtool = Path(prometheus.program()).with_name("promtool")
    done = subprocess.run([promtool, "check", "config", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_setting_that_cannot_be_translated_is_refused(shipped: dict, tmp_path: Path):
    monitor = shipped["PodMonitor"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    changed = {**endpoint, "metricRelabelings": []}
    spec = {**monitor["spec"], "podMetricsEndpoints": [changed]}
    with pytest.raises(ValueError, match="metricRelabelings"):
        monitors.jobs({**monitor, "spec": spec}, tmp_path)


def test_every_port_of_a_pod_is_a_target_with_the_node_of_the_pod():
    waiting = pod("waiting", "agent")
    del waiting["status"]["podIP"]
    named, nameless = monitors.pod_targets([pod("agent-1", "agent", "node-b"), waiting])
    assert named["targets"] == ["10.244.1.7:8080"] and nameless["targets"] == ["10.244.1.7:6379"]
    port = "__meta_kubernetes_pod_container_port_name"
    assert (named["labels"][port], nameless["labels"][port]) == ("metrics", "")
    assert named["labels"]["__meta_kubernetes_pod_node_name"] == "node-b"
    component = "__meta_kubernetes_pod_label_app_kubernetes_io_component"
    assert named["labels"][component] == "agent"


def test_targets_of_a_service_are_those_of_its_own_slices(shipped: dict):
    def slice_of(service: str, address: str, name: str) -> dict:
        endpoint = {"addresses": [address], "targetRef": {"kind": "Pod", "name": name}}
        return {
            "metadata": {"labels": {"kubernetes.io/service-name": service}},
            "endpoints": [endpoint],
            "ports": [{"name": "metrics", "port": 8080}],
        }

    slices = [
        slice_of("cachewarm-operator", "10.244.1.7", "operator-1"),
        slice_of("another", "10.244.1.8", "agent-1"),
    ]
    known = [pod("operator-1", "operator"), pod("agent-1", "agent")]
    (target,) = monitors.service_targets([shipped["Service"]], slices, known)
    assert target["targets"] == ["10.244.1.7:8080"]
    labels = target["labels"]
    assert labels["__meta_kubernetes_pod_name"] == "operator-1"
    assert labels["__meta_kubernetes_endpointslice_port_name"] == "metrics"
    component = "__meta_kubernetes_service_label_app_kubernetes_io_component"
    assert labels[component] == "operator"


def test_query_of_a_page_is_the_block_after_its_title():
    query = prometheus.documented_query("README.md", "The hit rate in Prometheus")
    assert query.startswith("sum by") and 'result="hit"' in query
