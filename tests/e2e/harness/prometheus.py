# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus that scrapes the pods of operator and agents with the settings of the shipped
monitors, and evaluates the shipped rules. It runs beside the test, in the cluster's network."""

import json
import os
import re
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from . import monitors, pods
from .cluster import REPOSITORY, Cluster
from .kubectl import Kubectl
from .product import Product, selector
from .waiting import wait_for

_RULES = monitors.CHART / "files" / "rules.yaml"
_INTERVAL = "2s"  # the monitors have 30 s, with which a test would wait for minutes
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def program() -> str:
    cache = Path(os.environ.get("CACHEWARM_CACHE") or Path.home() / ".cache" / "cachewarm")
    default = cache / "debs/current/prometheus/usr/bin/prometheus"
    return os.environ.get("CACHEWARM_PROMETHEUS") or str(default)


def documented_query(page: str, title: str) -> str:
    """The first block of code of a page of the repository after the words `title`."""
    text = (REPOSITORY / page).read_text()
    _, found, rest = text.partition(title)
    block = re.search(r"```(?:promql)?\n(.*?)```", rest, re.DOTALL)
    assert found and block, f"{page} has no query after {title!r}"
    return " ".join(block.group(1).split())


class Prometheus:
    """The process, which evaluates the rules of the chart."""

    def __init__(self, folder: Path, scrape_configs: list[dict]):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        self._url = f"http://{address}/api/v1"
        config = {
            "global": {"evaluation_interval": _INTERVAL},
            "rule_files": [str(_RULES)],
            "scrape_configs": scrape_configs,
        }
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(config))
        self._log = folder / "prometheus.log"
        command = [program(), f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [*command, f"--web.listen-address={address}"], stdout=log, stderr=log
            )

    def get(self, path: str, **parameters: str) -> dict:
        """The field `data` of an answer; {} while nothing listens yet."""
        query = urllib.parse.urlencode(parameters)
        try:
            with _DIRECT.open(f"{self._url}/{path}?{query}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it reads its storage
                return {}
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error
        except OSError as error:
            if self._process.poll() is not None:
                raise AssertionError(self._log.read_text()) from error
            return {}

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Pairs of labels and value."""
        result = self.get("query", query=expression).get("result", [])
        return [(sample["metric"], float(sample["value"][1])) for sample in result]

    def value(self, expression: str, **labels: str) -> float | None:
        """The value of the one series with these labels among those of the result; None if there
        is none."""
        found = [
            value for seen, value in self.query(expression) if labels.items() <= seen.items()
        ]
        assert len(found) <= 1, f"{len(found)} series of {labels}: {expression}"
        return found[0] if found else None

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Monitoring:
    """Prometheus with the targets of one installation."""

    def __init__(self, cluster: Cluster, product: Product, folder: Path):
        self._system: Kubectl = product.kubectl
        things = monitors.rendered(cluster.helm(), self._system.namespace)
        self._services = [thing for thing in things if thing["kind"] == "Service"]
        self._system.apply(*self._services, server_side=True)
        shipped = [thing for thing in things if thing["kind"].endswith("Monitor")]
        self._targets = folder / "targets"
        self._targets.mkdir()
        self.jobs = [job for each in shipped for job in monitors.jobs(each, self._targets)]
        self.discover()
        fast = {"scrape_interval": _INTERVAL, "scrape_timeout": _INTERVAL}
        configs = [{**job.config, **fast} for job in self.jobs]
        self.prometheus = Prometheus(folder, configs)

    def discover(self) -> None:
        """Writes the present targets. Every job sees all pods of the namespace and all Services of
        the chart; its own rules select."""
        found = self._system.list("pods")
        slices = self._system.list("endpointslices", "kubernetes.io/service-name")
        for job in self.jobs:
            if job.of_services:
                targets = monitors.service_targets(self._services, slices, found)
            else:
                targets = monitors.pod_targets(found)
            partial = self._targets / "partial"
            partial.write_text(json.dumps(targets))
            partial.rename(self._targets / monitors.target_file(job.name))

    def wait_scraped(self) -> None:
        """Every pod of operator and agents is scraped, once, and nothing else is."""

        def scraped() -> bool:
            self.discover()
            wanted = sorted(
                pods.name(pod)
                for name in ("operator", "agent")
                for pod in self._system.list("pods", selector(name))
                if not pods.deleted(pod)
            )
            up = [(labels["pod"], value) for labels, value in self.prometheus.query("up")]
            return sorted(up) == [(name, 1.0) for name in wanted]

        wait_for("every pod is scraped once", scraped, 60, self._system)

    def remove(self) -> None:
        self.prometheus.stop()
        for service in self._services:
            self._system.delete("service", service["metadata"]["name"])


@contextmanager
def monitoring(cluster: Cluster, product: Product, folder: Path) -> Iterator[Monitoring]:
    running = Monitoring(cluster, product, folder)
    try:
        running.wait_scraped()
        yield running
    finally:
        running.remove()
