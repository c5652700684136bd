# SPDX-License-Identifier: Apache-2.0
"""Rules that hold while everything is killed, judged from the objects of the API server. Of
cachewarm's own reports only the deadline on the pod is used. Pure: no clock, no cluster.

1. No pod is held past its deadline and GRACE. The deadline is the earliest that the pod ever noted
   (cachewarm.io/held-until), and never later than its creation and the longest hold that any warmup
   here allows. Seconds in which nobody could release it
   (excuses.py) are not counted.
2. At most one live builder per (warmup, key): pods that carry the labels of a builder Job, and pods
   that a NodeCache asks to capture for that key. Live: not finished, not being deleted, its Job
   neither, on a node that is Ready. Kinds are watched apart and not in step, so two must be
   seen together for longer than OVERLAP.
3. A pod is not changed after it was bound: spec, labels, annotations. The one exception is
   cachewarm.io/start, which says how it started: it may be added, once, and never changes.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime

from .excuses import Excuses

GRACE = 5.0
OVERLAP = 3.0
GATE = "cachewarm.io/wait-for-cache"
HELD_UNTIL = "cachewarm.io/held-until"
START = "cachewarm.io/start"
OF_WARMUP = "cachewarm.io/builder-warmup"
OF_KEY = "cachewarm.io/builder-key"
KEY_DIGITS = 32  # of a key, in the label: it holds no more than 63 characters
HELD, BUILDERS, BOUND = "held past its deadline", "two builders", "changed after it was bound"


@dataclass(frozen=True)
class Seen:
    """One event of a watch, or one object of a list (ADDED; DELETED: it was there and is not)."""

    at: float  # seconds since the epoch
    type: str  # ADDED, MODIFIED, DELETED
    object: dict

    @property
    def kind(self) -> str:
        return self.object["kind"]

    @property
    def uid(self) -> str:
        return self.object["metadata"]["uid"]

    @property
    def gone(self) -> bool:
        return self.type == "DELETED" or "deletionTimestamp" in self.object["metadata"]


@dataclass(frozen=True)
class Violation:
    at: float
    rule: str
    subject: str
    words: str

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.at).strftime("%H:%M:%S")
        return f"{moment} {self.subject}: {self.rule}: {self.words}"


@dataclass
class Tally:
    """Counts the objects that were judged."""

    pods: int = 0
    held: int = 0
    builders: int = 0
    bound: int = 0
    longest_hold: float = 0.0
    # Most seconds past a deadline, excused ones taken off; below zero: none was reached.
    latest: float = float("-inf")
    latest_excused: float = 0.0  # seconds that were taken off there


def seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def name(thing: dict) -> str:
    return f"{thing['metadata'].get('namespace', '')}/{thing['metadata']['name']}"


def annotations(thing: dict) -> dict[str, str]:
    return thing["metadata"].get("annotations") or {}


def is_held(pod: dict) -> bool:
    return any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates") or [])


class Holds:
    """Rule 1."""

    @dataclass
    class Hold:
        pod: str
        created: float
        noted: float | None = None
        reported: bool = False

    def __init__(self, longest: float, excuses: Excuses, tally: Tally):
        self._longest = longest  # seconds that a warmup here allows at most
        self._excuses = excuses
        self._tally = tally
        self._held: dict[str, Holds.Hold] = {}

    def see(self, seen: Seen) -> list[Violation]:
        if is_held(seen.object) and not seen.gone:
            self._note(seen)
            return self.look(seen.at)
        hold = self._held.pop(seen.uid, None)
        return self._judge(hold, seen.at) if hold else []

    def look(self, now: float) -> list[Violation]:
        return [each for hold in self._held.values() for each in self._judge(hold, now)]

    @property
    def now_held(self) -> list[str]:
        return sorted(hold.pod for hold in self._held.values())

    def _note(self, seen: Seen) -> None:
        if seen.uid not in self._held:
            created = seconds(seen.object["metadata"]["creationTimestamp"])
            self._held[seen.uid] = Holds.Hold(name(seen.object), created)
            self._tally.held += 1
        hold = self._held[seen.uid]
        try:
            noted = seconds(annotations(seen.object)[HELD_UNTIL])
        except (KeyError, ValueError):
            return
        hold.noted = noted if hold.noted is None else min(hold.noted, noted)

    def _judge(self, hold: "Holds.Hold", now: float) -> list[Violation]:
        longest = hold.created + self._longest
        deadline = longest if hold.noted is None else min(hold.noted, longest)
        excused = self._excuses.within(deadline, now)
        late = now - deadline - excused
        self._tally.longest_hold = max(self._tally.longest_hold, now - hold.created)
        if late > self._tally.latest:
            self._tally.latest, self._tally.latest_excused = late, excused
        if late <= GRACE or hold.reported:
            return []
        hold.reported = True
        noted = "noted" if hold.noted is not None else "by its creation, nothing was noted"
        words = f"{late:.1f} s past its deadline ({noted}; {excused:.1f} s more were excused)"
        return [Violation(now, HELD, hold.pod, words)]


class Builders:
    """Rule 2."""

    def __init__(self, tally: Tally):
        self._tally = tally
        self._pods: dict[str, dict] = {}
        self._jobs_gone: set[str] = set()
        self._nodes_off: set[str] = set()
        self._asked: dict[str, set[tuple[tuple[str, str], str]]] = {}  # by node
        self._known: set[str] = set()
        self._since: dict[tuple[str, str], float] = {}
        self._reported: set[tuple[str, str]] = set()

    def see(self, seen: Seen) -> list[Violation]:
        thing = seen.object
        if seen.kind == "Pod":
            self._see_pod(seen)
        elif seen.kind == "Job" and seen.gone:
            self._jobs_gone.add(seen.uid)
        elif seen.kind == "Node":
            off = seen.gone or not _is_ready(thing)
            (self._nodes_off.add if off else self._nodes_off.discard)(thing["metadata"]["name"])
        elif seen.kind == "NodeCache":
            captures = [] if seen.gone else thing.get("spec", {}).get("captures", [])
            self._asked[thing["metadata"]["name"]] = {
                ((each["warmupUID"], each["key"][:KEY_DIGITS]), each["podUID"]) for each in captures
            }
        return self.look(seen.at)

    def look(self, now: float) -> list[Violation]:
        out = []
        live = self._live()
        for key, found in live.items():
            self._known |= found
            if len(found) < 2:
                self._since.pop(key, None)
            elif now - self._since.setdefault(key, now) > OVERLAP and key not in self._reported:
                self._reported.add(key)
                both = ", ".join(sorted(name(self._pods[uid]) for uid in found))
                words = f"{both} for {OVERLAP:.0f} s and more"
                out.append(Violation(now, BUILDERS, f"warmup {key[0]}, key {key[1][:8]}", words))
        self._since = {key: at for key, at in self._since.items() if key in live}
        self._tally.builders = len(self._known)
        return out

    def _see_pod(self, seen: Seen) -> None:
        finished = seen.object.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if seen.gone or finished:
            self._pods.pop(seen.uid, None)
        else:
            self._pods[seen.uid] = seen.object

    def _live(self) -> dict[tuple[str, str], set[str]]:
        """By (warmup's uid, key): the uids of its live builders."""
        out: dict[tuple[str, str], set[str]] = {}
        for uid, pod in self._pods.items():
            labels = pod["metadata"].get("labels") or {}
            if OF_KEY in labels and self._is_live(pod):
                out.setdefault((labels.get(OF_WARMUP, ""), labels[OF_KEY]), set()).add(uid)
        for asked in self._asked.values():
            for key, uid in asked:
                if uid in self._pods and self._is_live(self._pods[uid]):
                    out.setdefault(key, set()).add(uid)
        return out

    def _is_live(self, pod: dict) -> bool:
        owners = {each["uid"] for each in pod["metadata"].get("ownerReferences", [])}
        off = pod["spec"].get("nodeName", "") in self._nodes_off
        return not off and not owners & self._jobs_gone


def _is_ready(node: dict) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


class BoundPods:
    """Rule 3."""

    def __init__(self, tally: Tally):
        self._tally = tally
        self._as_bound: dict[str, dict[str, str]] = {}
        self._reported: set[str] = set()

    def see(self, seen: Seen) -> list[Violation]:
        pod = seen.object
        if seen.type == "DELETED":
            self._as_bound.pop(seen.uid, None)
            return []
        if not pod["spec"].get("nodeName"):
            return []
        now = _fields(pod)
        if seen.uid not in self._as_bound:
            self._as_bound[seen.uid] = now
            self._tally.bound += 1
            return []
        before = self._as_bound[seen.uid]
        changed = [
            field for field in sorted(before.keys() | now.keys())
            if before.get(field) != now.get(field)
        ]
        if START in changed and START not in before:
            changed.remove(START)
            before[START] = now[START]
        if not changed or seen.uid in self._reported:
            return []
        self._reported.add(seen.uid)
        words = "; ".join(f"{each}: {before.get(each)} -> {now.get(each)}" for each in changed)
        return [Violation(seen.at, BOUND, name(pod), words)]


def _fields(pod: dict) -> dict[str, str]:
    out = {f"spec.{key}": json.dumps(value, sort_keys=True) for key, value in pod["spec"].items()}
    out["labels"] = json.dumps(pod["metadata"].get("labels") or {}, sort_keys=True)
    return {**out, **annotations(pod)}


@dataclass
class Judge:
    """Give it every event in the order of `at`, and look() now and then: silence is judged too."""

    longest_hold: float  # seconds: the most that a warmup here allows
    excuses: Excuses
    tally: Tally = field(default_factory=Tally)
    violations: list[Violation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._holds = Holds(self.longest_hold, self.excuses, self.tally)
        self._builders = Builders(self.tally)
        self._bound = BoundPods(self.tally)
        self._pods: set[str] = set()

    def see(self, seen: Seen) -> None:
        if seen.kind == "Pod":
            self._pods.add(seen.uid)
            self.tally.pods = len(self._pods)
            self.violations += self._holds.see(seen)
            self.violations += self._bound.see(seen)
        self.violations += self._builders.see(seen)

    def look(self, now: float) -> None:
        self.violations += self._holds.look(now)
        self.violations += self._builders.look(now)

    @property
    def now_held(self) -> list[str]:
        return self._holds.now_held
