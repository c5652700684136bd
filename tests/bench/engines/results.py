# SPDX-License-Identifier: Apache-2.0
"""The figures of the bench: medians, judge, table and JSON. Pure."""

import statistics
from dataclasses import dataclass

METHODS = ("cold", "warm", "copy", "mega", "redis", "fal", "b10", "cachewarm run",
           "cachewarm import")
CACHEWARM = ("cachewarm run", "cachewarm import")  # methods that the judge looks at
FIRST_CALL_TIMES_WARM_MAX = 1.05
SAVE_SECONDS_MAX = 0.1


@dataclass(frozen=True)
class Sample:
    """One start. None: the method has no such step."""

    first_call_seconds: float
    first_call_cpu_seconds: float  # of the whole process
    native_rebuilt: int
    hits: int
    misses: int
    save_seconds: float | None = None
    restore_seconds: float | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Line:
    """The condition that one line of the judge checks, and whether it holds."""

    model: str
    method: str
    what: str
    measured: float
    limit: float

    @property
    def holds(self):
        return self.measured <= self.limit


def median(samples, field):
    values = [getattr(sample, field) for sample in samples if getattr(sample, field) is not None]
    return statistics.median(values) if values else None


def rows(samples):
    """Returns one object per (model, method) of `samples`, in their order: medians over rounds, and
    the worst round where one rebuilt object is a failure."""
    found = []
    for (model, method), each in samples.items():
        row = {"model": model, "method": method}
        for field in ("save_seconds", "bytes", "restore_seconds", "first_call_seconds",
                      "first_call_cpu_seconds", "hits"):
            row[field] = median(each, field)
        row["native_rebuilt"] = max(sample.native_rebuilt for sample in each)
        row["misses"] = max(sample.misses for sample in each)
        row["rounds"] = len(each)
        found.append(row)
    return found


def _least(samples, model, field, methods):
    """The least median of other methods; None if none has one."""
    values = [median(samples[model, method], field) for method in methods
              if (model, method) in samples]
    values = [value for value in values if value is not None]
    return min(values) if values else None


def _ratio_to_warm(samples, model, method):
    """The median of same-round ratios of the first calls."""
    pairs = zip(samples[model, method], samples[model, "warm"])
    return statistics.median(a.first_call_seconds / b.first_call_seconds for a, b in pairs)


def judge(samples):
    """Returns the lines that the methods of cachewarm have to hold, model by model."""
    others = [method for method in METHODS if method not in (*CACHEWARM, "cold", "warm")]
    lines = []
    for model, method in samples:
        if method not in CACHEWARM:
            continue
        mine = samples[model, method]

        def add(what, measured, limit, model=model, method=method):
            if measured is not None and limit is not None:
                lines.append(Line(model, method, what, measured, limit))

        add("native objects rebuilt", max(each.native_rebuilt for each in mine), 0)
        if (model, "warm") in samples:
            add("first call / warm in place", _ratio_to_warm(samples, model, method),
                FIRST_CALL_TIMES_WARM_MAX)
        add("processor seconds, the lowest", median(mine, "first_call_cpu_seconds"),
            _least(samples, model, "first_call_cpu_seconds", others))
        add("seconds to save", median(mine, "save_seconds"), SAVE_SECONDS_MAX)
        add("bytes, the least", median(mine, "bytes"), _least(samples, model, "bytes", others))
    return lines


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def table(samples, lines, facts):
    """Returns the report as Markdown. `facts`: "date", "machine", "load", "notes", "failures"."""
    text = [f"{facts['date']}, {facts['machine']}, load average {facts['load']} at the start.", "",
            "| model | method | save s | bytes | restore s | first call s | CPU s, whole process "
            "| native rebuilt | hits / misses | rounds |", "|---|---" + 8 * "|--:" + "|"]
    for row in rows(samples):
        text.append(
            f"| {row['model']} | {row['method']} | {number(row['save_seconds'])} | "
            f"{number(row['bytes'], 0)} | {number(row['restore_seconds'])} | "
            f"{number(row['first_call_seconds'])} | {number(row['first_call_cpu_seconds'], 1)} | "
            f"{row['native_rebuilt']} | {number(row['hits'], 0)} / {row['misses']} | "
            f"{row['rounds']} |")
    text += ["", "| model | method | condition | measured | limit | |",
             "|---|---|---|--:|--:|---|"]
    text += [f"| {line.model} | {line.method} | {line.what} | {number(line.measured)} | "
             f"{number(line.limit)} | {'holds' if line.holds else '**misses**'} |"
             for line in lines]
    text += ["", *(f"- {note}" for note in facts["notes"])]
    text += [f"- failed: {failure}" for failure in facts["failures"]]
    return "\n".join(text) + "\n"

