# SPDX-License-Identifier: Apache-2.0
"""Markdown tables of a run on a GPU."""

from dataclasses import dataclass

from smi import Row


@dataclass(frozen=True)
class Start:
    """One start of a workload: what its engine counted, and the time of its first call."""

    hits: int
    misses: int
    seconds: float


@dataclass(frozen=True)
class Result:
    workload: str
    counter: str  # the engine's counter that hits and misses come from
    cold: Start
    warm: Start

    @property
    def is_warm(self) -> bool:
        """True if the warm start compiled nothing and used what the cold one compiled."""
        return self.cold.misses > 0 and self.warm.misses == 0 and self.warm.hits > 0


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def probe_table(rows: list[Row]) -> str:
    return table(["fact", "nvidia-smi", "cachewarm", "equal"],
                 [[row.fact, row.by_smi, row.by_probe, "yes" if row.agrees else "**no**"]
                  for row in rows])


def workload_table(results: list[Result]) -> str:
    def row(result: Result) -> list[str]:
        starts = [f"{start.hits} / {start.misses}" for start in (result.cold, result.warm)]
        return [result.workload, result.counter, starts[0], f"{result.cold.seconds:.2f}", starts[1],
                f"{result.warm.seconds:.2f}", "yes" if result.is_warm else "**no**"]

    return table(["workload", "counter", "cold hits / misses", "cold s", "warm hits / misses",
                  "warm s", "warm"], [row(result) for result in results])
