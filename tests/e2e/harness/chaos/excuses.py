# SPDX-License-Identifier: Apache-2.0
"""Intervals in which no program could release a held pod: the API server was off, or refused writes
of pods. Such seconds do not count as a violation; the summary lists all of them."""

from dataclasses import dataclass, field


@dataclass
class Excuses:
    """Intervals of seconds since the epoch, which may overlap. Any writers, any readers."""

    _spans: list[list[float]] = field(default_factory=list)

    def begin(self, now: float) -> list[float]:
        """Returns the interval that end() takes."""
        span = [now, float("inf")]
        self._spans.append(span)
        return span

    def end(self, span: list[float], now: float) -> None:
        span[1] = now

    def within(self, begin: float, end: float) -> float:
        """Seconds from `begin` to `end` that are excused, none of them twice."""
        total, reached = 0.0, begin
        for first, last in sorted(map(tuple, self._spans)):
            first, last = max(first, reached), min(last, end)
            if last > first:
                total += last - first
                reached = last
        return total
