# SPDX-License-Identifier: Apache-2.0
"""The metrics of the programs, read from docs/reference/metrics.md, which is generated from the
code; and what a PromQL expression reads of them."""
import re
from dataclasses import dataclass

from conftest import ROOT

PAGE = ROOT / "docs/reference/metrics.md"
# Labels that Prometheus adds to every series of a scraped pod.
OF_TARGET = {"namespace", "pod", "instance", "node", "job"}
ENDINGS = ("_bucket", "_sum", "_count")


@dataclass(frozen=True)
class Metric:
    name: str
    kind: str  # counter, gauge or histogram
    labels: frozenset
    help: str


def metrics_of(program):
    section = PAGE.read_text().partition(f"\n## {program}\n")[2].partition("\n## ")[0]
    metrics = []
    for row in re.findall(r"^\| `.*$", section, re.MULTILINE):
        cells = re.split(r"(?<!\\) \| ?", row[2:].removesuffix(" |"), maxsplit=3)
        name, kind, labels, text = cells
        metrics.append(Metric(name.strip("`"), kind, frozenset(re.findall(r"\w+", labels)), text))
    return metrics


def all_metrics():
    """By name. Both programs export some metrics, with the same labels."""
    return {metric.name: metric for program in ("Operator", "Agent")
            for metric in metrics_of(program)}


def problems_of(expression, recorded=()):
    """Yields what the expression reads and no program exports: a metric, a label in its selector,
    or a label of a grouping. `recorded` are the names of recording rules."""
    known = all_metrics()
    labels = set(OF_TARGET)
    read = re.findall(r"([a-z_:0-9]*cachewarm[a-z_:0-9]*)(?:\{([^}]*)\})?", expression)
    if not read:
        yield f"no metric of cachewarm in {expression}"
    for name, selector in read:
        if ":" in name:
            if name not in recorded:
                yield f"no rule records {name}"
            own = {label for label in ("namespace", "warmup", "gpu_type", "result", "reason")
                   if label in name.partition(":")[0]}
        else:
            base = name
            for ending in ENDINGS:
                if known.get(name.removesuffix(ending), Metric("", "", (), "")).kind == "histogram":
                    base = name.removesuffix(ending)
            metric = known.get(base)
            if metric is None or (metric.kind == "histogram") == (base == name):
                yield f"no program exports {name}"
                continue
            own = metric.labels
        labels |= set(own) | ({"le"} if name.endswith("_bucket") else set())
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector):
            if label not in own | OF_TARGET:
                yield f"{name} has no label {label}"
    for grouping in re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", expression):
        for label in re.findall(r"\w+", grouping):
            if label not in labels:
                yield f"no metric of the expression has the label {label}: {expression}"
