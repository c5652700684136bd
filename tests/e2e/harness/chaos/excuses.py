# SPDX-License-Identifier: Apache-2.0
"""Intervals in which no program could release a held pod: the API server was off, or refused writes
of pods, or no operator ran. Such seconds do not count as a violation; the summary lists all."""

from dataclasses import dataclass, field

EVERYWHERE = ""


def namespace(name: str) -> str:
    return f"namespace {name}"


def node(name: str) -> str:
    return f"node {name}"


@dataclass
class Span:
    begin: float  # seconds since the epoch
    end: float
    scope: str  # EVERYWHERE, or one namespace or node
    limit: float  # seconds of it that are excused at most

    @property
    def last(self) -> float:
        return min(self.end, self.begin + self.limit)


@dataclass
class Excuses:
    """Intervals of seconds since the epoch, which may overlap. Any writers, any readers."""

    # uids of pods whose processes the chaos killed, one after the other.
    killed: set[str] = field(default_factory=set)
    # When the chaos began to kill every operator, in seconds since the epoch.
    operators_killed: list[float] = field(default_factory=list)
    _spans: list[Span] = field(default_factory=list)

    def begin(self, now: float, scope: str = EVERYWHERE, limit: float = float("inf")) -> Span:
        """Returns the interval that end() takes."""
        span = Span(now, float("inf"), scope, limit)
        self._spans.append(span)
        return span

    def end(self, span: Span, now: float) -> None:
        span.end = now

    @property
    def ended(self) -> int:
        """The number of intervals that are over and were not limited to a namespace or node."""
        return sum(span.end != float("inf") for span in self._spans if span.scope == EVERYWHERE)

    def within(self, begin: float, end: float, scope: str = EVERYWHERE) -> float:
        """Seconds from `begin` to `end` that are excused everywhere or in `scope`, none of them
        twice. The limit of an interval counts from `begin`, if that is later than its own."""
        total, reached = 0.0, begin
        spans = [span for span in self._spans if span.scope in (EVERYWHERE, scope)]
        for span in sorted(spans, key=lambda each: (each.begin, each.end)):
            limit = max(span.begin, begin) + span.limit
            first, last = max(span.begin, reached), min(span.end, limit, end)
            if last > first:
                total += last - first
                reached = last
        return total

    def touches(self, scope: str, begin: float, end: float) -> bool:
        """True if an interval of exactly this scope overlaps the given one."""
        return any(span.scope == scope and span.begin <= end and span.last >= begin
                   for span in list(self._spans))
