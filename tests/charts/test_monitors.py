# SPDX-License-Identifier: Apache-2.0
"""Checks what Prometheus scrapes: the monitors, the Services and the annotations of the pods."""
import pytest
import yaml

from conftest import ROOT

PROGRAMS = {"operator": ("Deployment", "ServiceMonitor", "serviceMonitor"),
            "agent": ("DaemonSet", "PodMonitor", "podMonitor")}


def enabled(helm, *values):
    return helm.template(*(word for value in values for word in ("--set", f"metrics.{value}")))


def pod_template(rendered, program):
    return rendered[PROGRAMS[program][0], f"cachewarm-{program}"]["spec"]["template"]


def annotations(rendered, program):
    return pod_template(rendered, program)["metadata"]["annotations"]


def selects(selector, labels):
    return selector["matchLabels"].items() <= labels.items()


def test_nothing_of_the_prometheus_operator_is_installed_by_default(rendered):
    assert not [key for key in rendered if key[0] in ("Service", "ServiceMonitor", "PodMonitor")]


@pytest.mark.parametrize("program", PROGRAMS)
def test_monitor_scrapes_the_pods_of_one_program_and_keeps_their_labels(helm, program):
    _, kind, value = PROGRAMS[program]
    rendered = enabled(helm, f"{value}.enabled=true", f"{value}.interval=15s",
                       f"{value}.labels.release=prom")
    monitors = [thing for key, thing in rendered.items() if key[0].endswith("Monitor")]
    (monitor,) = monitors
    assert (monitor["kind"], monitor["metadata"]["name"]) == (kind, f"cachewarm-{program}")
    assert monitor["metadata"]["labels"]["release"] == "prom"
    (endpoint,) = monitor["spec"].get("endpoints") or monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["interval"]) == ("metrics", "15s")
    assert endpoint["honorLabels"] is True
    for other in PROGRAMS:
        labels = pod_template(rendered, other)["metadata"]["labels"]
        assert selects(monitor["spec"]["selector"], labels) == (other == program)


def test_service_monitor_scrapes_one_service(helm):
    rendered = helm.template("--set", "admission=webhook,metrics.service=true",
                             "--set", "metrics.serviceMonitor.enabled=true")
    monitor = rendered["ServiceMonitor", "cachewarm-operator"]["spec"]
    services = {name: thing for (kind, name), thing in rendered.items() if kind == "Service"}
    assert sorted(services) == ["cachewarm-agent", "cachewarm-operator", "cachewarm-webhook"]
    scraped = [name for name, service in services.items()
               if selects(monitor["selector"], service["metadata"]["labels"])
               and monitor["endpoints"][0]["port"] in [p["name"] for p in service["spec"]["ports"]]]
    assert scraped == ["cachewarm-operator"]


def test_service_monitor_brings_its_service(helm):
    rendered = enabled(helm, "serviceMonitor.enabled=true")
    (service,) = [thing for key, thing in rendered.items() if key[0] == "Service"]
    assert service["spec"] == {
        "clusterIP": "None",
        "selector": {"app.kubernetes.io/name": "cachewarm",
                     "app.kubernetes.io/component": "operator"},
        "ports": [{"name": "metrics", "port": 8080, "targetPort": "metrics"}]}


@pytest.mark.parametrize("program", PROGRAMS)
def test_monitored_pods_have_no_annotations_that_cause_a_second_scrape(helm, program):
    scraped = {"prometheus.io/scrape": "true", "prometheus.io/port": "8080",
               "prometheus.io/path": "/metrics"}
    rendered = enabled(helm, f"{PROGRAMS[program][2]}.enabled=true")
    for other in PROGRAMS:
        annotated = scraped.items() <= annotations(rendered, other).items()
        assert annotated == (other != program)
    rendered = enabled(helm, "annotations=false")
    assert list(annotations(rendered, program)) == ["checksum/config"]


def test_agents_are_labelled_with_their_node(helm):
    rendered = enabled(helm, "podMonitor.enabled=true")
    (endpoint,) = rendered["PodMonitor", "cachewarm-agent"]["spec"]["podMetricsEndpoints"]
    assert endpoint["relabelings"] == [
        {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}]
    # honorLabels would let a label of a series win over this one.
    metrics = (ROOT / "docs/reference/metrics.md").read_text()
    assert "node" not in {label for row in metrics.splitlines() if row.startswith("| `")
                          for label in row.split("|")[3].replace("`", "").replace(",", " ").split()}


def test_scrape_configuration_of_the_documentation_is_valid(promtool, tmp_path):
    text = (ROOT / "docs/monitoring.md").read_text()
    block = text.partition("```yaml\nscrape_configs:")[2].partition("```")[0]
    config = yaml.safe_load("scrape_configs:" + block)
    (job,) = config["scrape_configs"]
    # Debian's promtool is built without the discovery of Kubernetes.
    assert job.pop("kubernetes_sd_configs")[0]["role"] == "pod"
    file = tmp_path / "prometheus.yaml"
    file.write_text(yaml.safe_dump(config))
    promtool("check", "config", file)
    assert job["honor_labels"] is True
    targets = {rule.get("target_label") for rule in job["relabel_configs"]}
    assert {"namespace", "pod", "node"} <= targets
