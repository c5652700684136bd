# SPDX-License-Identifier: Apache-2.0
"""Translates the ServiceMonitors and PodMonitors of the chart into scrape configurations, as the
Prometheus operator does. Debian's Prometheus is built without the discovery of Kubernetes, so that
tests write the discovered targets into files; the labels that begin with __meta_kubernetes_ are the
same."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from .cluster import REPOSITORY

CHART = REPOSITORY / "charts" / "cachewarm"
# Fields of an endpoint and their names in a scrape configuration.
_FIELDS = {
    "honorLabels": "honor_labels",
    "honorTimestamps": "honor_timestamps",
    "interval": "scrape_interval",
    "scrapeTimeout": "scrape_timeout",
    "path": "metrics_path",
    "scheme": "scheme",
    "params": "params",
    "followRedirects": "follow_redirects",
}
_RELABEL_FIELDS = {
    "sourceLabels": "source_labels",
    "separator": "separator",
    "targetLabel": "target_label",
    "regex": "regex",
    "modulus": "modulus",
    "replacement": "replacement",
    "action": "action",
}


def rendered(helm: str, namespace: str) -> list[dict]:
    """The monitors of both programs and the Service that one of them selects, as helm renders
    them."""
    command = [helm, "template", "cachewarm", str(CHART), f"--namespace={namespace}"]
    command += ["--show-only=templates/monitors.yaml"]
    for monitor in ("serviceMonitor", "podMonitor"):
        command += ["--set", f"metrics.{monitor}.enabled=true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(done.stderr)
    return [thing for thing in yaml.safe_load_all(done.stdout) if thing]


@dataclass(frozen=True)
class Job:
    """One scrape configuration and the objects whose pods it may scrape."""

    monitor: dict
    config: dict  # without targets

    @property
    def name(self) -> str:
        return self.config["job_name"]

    @property
    def of_services(self) -> bool:
        return self.monitor["kind"] == "ServiceMonitor"


def jobs(monitor: dict, targets: Path) -> list[Job]:
    """One job for each endpoint. The job reads its targets from a file below `targets`."""
    of_services = monitor["kind"] == "ServiceMonitor"
    spec = dict(monitor["spec"])
    selector = spec.pop("selector")
    endpoints = spec.pop("endpoints" if of_services else "podMetricsEndpoints")
    _reject_unknown(monitor["kind"], spec)
    found = []
    for number, endpoint in enumerate(endpoints):
        metadata = monitor["metadata"]
        kind = "serviceMonitor" if of_services else "podMonitor"
        name = f"{kind}/{metadata['namespace']}/{metadata['name']}/{number}"
        config = {"job_name": name, **_scrape_settings(endpoint)}
        config["relabel_configs"] = _relabelings(monitor, selector, endpoint)
        files = [str(targets / target_file(name))]
        config["file_sd_configs"] = [{"files": files, "refresh_interval": "2s"}]
        found.append(Job(monitor, config))
    return found


def target_file(job_name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", job_name) + ".json"


def pod_targets(pods: list[dict]) -> list[dict]:
    """One target for each container port of each pod that has an address."""
    found = []
    for pod in pods:
        address = pod["status"].get("podIP")
        for container in pod["spec"]["containers"] if address else []:
            for port in container.get("ports", []):
                labels = {
                    **_of_pod(pod),
                    "__meta_kubernetes_pod_container_name": container["name"],
                    "__meta_kubernetes_pod_container_port_name": port.get("name", ""),
                }
                targets = [f"{address}:{port['containerPort']}"]
                found.append({"targets": targets, "labels": labels})
    return found


def service_targets(
    services: list[dict], slices: list[dict], pods: list[dict]
) -> list[dict]:
    """One target for each port of each address that the slices of a Service list."""
    known = {pod["metadata"]["name"]: pod for pod in pods}
    found = []
    for service in services:
        name = service["metadata"]["name"]
        of_service = {
            "__meta_kubernetes_service_name": name,
            **_label_names("service", service["metadata"].get("labels", {})),
        }
        for piece in slices:
            if piece["metadata"]["labels"]["kubernetes.io/service-name"] != name:
                continue
            for endpoint in piece.get("endpoints") or []:
                pod = known.get(endpoint.get("targetRef", {}).get("name", ""))
                for port in piece.get("ports") or []:
                    labels = {
                        **of_service,
                        **(_of_pod(pod) if pod else {}),
                        "__meta_kubernetes_endpointslice_port_name": port.get("name", ""),
                        "__meta_kubernetes_namespace": service["metadata"]["namespace"],
                    }
                    targets = [f"{address}:{port['port']}" for address in endpoint["addresses"]]
                    found.append({"targets": targets, "labels": labels})
    return found


def _reject_unknown(where: str, fields: dict) -> None:
    """A field that is not translated would be ignored, and the test would prove other settings
    than those that users get."""
    if fields:
        raise ValueError(f"{where}: {', '.join(sorted(fields))} cannot be translated")


def _scrape_settings(endpoint: dict) -> dict:
    left = {key: value for key, value in endpoint.items() if key not in ("port", "relabelings")}
    settings = {name: left.pop(field) for field, name in _FIELDS.items() if field in left}
    for field, name in (("tlsConfig", "tls_config"), ("authorization", "authorization")):
        if field in left:
            raise ValueError(f"{field}: tests have no Secret to read for {name}")
    _reject_unknown("endpoint", left)
    return settings


def _relabelings(monitor: dict, selector: dict, endpoint: dict) -> list[dict]:
    """In the order of the Prometheus operator: selection, its own labels, those of the object."""
    labels = dict(selector)
    wanted = labels.pop("matchLabels")
    _reject_unknown("selector", labels)
    of_services = monitor["kind"] == "ServiceMonitor"
    source = "service" if of_services else "pod"
    rules = []
    for key, value in sorted(wanted.items()):
        name = _sanitized(key)
        labels_of = f"__meta_kubernetes_{source}_label"
        rules.append(
            {
                "action": "keep",
                "source_labels": [f"{labels_of}_{name}", f"{labels_of}present_{name}"],
                "regex": f"({re.escape(value)});true",
            }
        )
    port = "endpointslice_port_name" if of_services else "pod_container_port_name"
    rules.append(
        {
            "action": "keep",
            "source_labels": [f"__meta_kubernetes_{port}"],
            "regex": endpoint["port"],
        }
    )
    copied = {
        "namespace": "namespace",
        "service": "service_name",
        "pod": "pod_name",
        "container": "pod_container_name",
    }
    rules += [
        {"source_labels": [f"__meta_kubernetes_{meta}"], "target_label": label}
        for label, meta in copied.items()
    ]
    metadata = monitor["metadata"]
    if of_services:
        job = {"source_labels": ["__meta_kubernetes_service_name"], "replacement": "${1}"}
    else:
        job = {"replacement": f"{metadata['namespace']}/{metadata['name']}"}
    rules.append({"target_label": "job", **job})
    rules.append({"target_label": "endpoint", "replacement": endpoint["port"]})
    for rule in endpoint.get("relabelings", []):
        left = dict(rule)
        rules.append(
            {name: left.pop(field) for field, name in _RELABEL_FIELDS.items() if field in left}
        )
        _reject_unknown("relabeling", left)
    return rules


def _sanitized(label: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_]", "_", label)


def _label_names(kind: str, labels: dict[str, str]) -> dict[str, str]:
    found = {}
    for key, value in labels.items():
        found[f"__meta_kubernetes_{kind}_label_{_sanitized(key)}"] = value
        found[f"__meta_kubernetes_{kind}_labelpresent_{_sanitized(key)}"] = "true"
    return found


def _of_pod(pod: dict) -> dict[str, str]:
    metadata = pod["metadata"]
    return {
        "__meta_kubernetes_namespace": metadata["namespace"],
        "__meta_kubernetes_pod_name": metadata["name"],
        "__meta_kubernetes_pod_node_name": pod["spec"].get("nodeName", ""),
        "__meta_kubernetes_pod_phase": pod["status"].get("phase", ""),
        **_label_names("pod", metadata.get("labels", {})),
    }
