# SPDX-License-Identifier: Apache-2.0
"""The Prometheus text format, as far as tests ask: samples by name and labels."""

import re
from dataclasses import dataclass

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Sample:
    name: str
    labels: dict[str, str]
    value: float


def parse(text: str) -> list[Sample]:
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            match = _SAMPLE.match(line)
            if not match:
                raise ValueError(f"not a sample: {line!r}")
            name, labels, value = match.groups()
            found.append(Sample(name, dict(_LABEL.findall(labels or "")), float(value)))
    return found


def by_label(samples: list[Sample], name: str, label: str, **where: str) -> dict[str, float]:
    """Sums per value of `label`, of the samples whose other labels are as `where` says."""
    sums: dict[str, float] = {}
    for sample in samples:
        if sample.name == name and where.items() <= sample.labels.items():
            key = sample.labels.get(label, "")
            sums[key] = sums.get(key, 0.0) + sample.value
    return {key: value for key, value in sums.items() if value}
