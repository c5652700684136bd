# SPDX-License-Identifier: Apache-2.0
"""Rules that hold while everything is killed, judged from outside: from the changes that the API
server logged (audit.py) and from the status of pods that kubelets wrote. Of cachewarm's own reports
only the deadline on the pod is used. Pure: no clock, no cluster.

1. No pod is held past its deadline and GRACE. The deadline is the earliest that the pod ever noted
   (cachewarm.io/held-until), and never later than its creation and the longest hold that any warmup
   here allows. Seconds in which nobody could release it (excuses.py) are not counted, and at
   most AWAY_MAX seconds after the deadline while kubelets report no operator, if the chaos killed
   all of them: the CronJob releases pods then.
2. At most one live builder per (warmup, key): pods that carry the labels of a builder Job, and pods
   that a NodeCache asks to capture for that key. Live: not finished, not being deleted, its Job
   neither, on a node that is Ready. Requests may be logged in another order than their writes, so
   two must be seen together for longer than OVERLAP.
3. A pod is not changed after it was bound: spec, labels, annotations. The one exception is
   cachewarm.io/start, which says how it started: it may be added, once, and never changes.
4. No pod fails with the cache: kubelets report no container of an injected pod that ended with an
   error of its own. Not judged are pods whose processes the chaos killed, and pods on a node whose
   disk it filled.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime

from . import excuses as scopes
from .excuses import Excuses, Span

GRACE = 5.0
OVERLAP = 3.0
# Until the CronJob released a pod, once a minute, and until a new operator looks at held pods.
AWAY_MAX = 90.0
BACK_SECONDS = 5.0
# The last operator is gone at most this long after the chaos began to kill all of them.
KILL_SECONDS = 60.0
GATE = "cachewarm.io/wait-for-cache"
HELD_UNTIL = "cachewarm.io/held-until"
START = "cachewarm.io/start"
OF_WARMUP = "cachewarm.io/builder-warmup"
OF_KEY = "cachewarm.io/builder-key"
KEY_DIGITS = 32  # of a key, in the label: it holds no more than 63 characters
HELD, BUILDERS, BOUND = "held past its deadline", "two builders", "changed after it was bound"
FAILED = "failed with the cache"
SYSTEM = "cachewarm-system"
ACCOUNTS = f"system:serviceaccount:{SYSTEM}:"
KUBELETS = "system:node:"
VOLUME = "cachewarm"
# Exit codes from here on are signals, or of the container runtime.
OWN_EXIT_CODES = range(1, 126)
# A container may fail a moment after the disk of its node was filled, or is free again.
DISK_SECONDS = 30.0


@dataclass(frozen=True)
class Seen:
    """One change of an object, or one object of a list (DELETED: it was there and is not)."""

    at: float  # seconds since the epoch
    type: str  # ADDED, MODIFIED, DELETED
    object: dict
    by: str = ""  # the user of the request
    request: object = None  # the body of the request

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
    releases: int = 0  # writes by cachewarm that removed its gate
    started: int = 0  # containers of injected pods that kubelets reported as started
    away: int = 0  # times that no operator ran
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
        scope: str = scopes.EVERYWHERE
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
        if hold and not seen.gone and seen.by.startswith(ACCOUNTS):
            self._tally.releases += 1
        return self._judge(hold, seen.at) if hold else []

    def look(self, now: float) -> list[Violation]:
        return [each for hold in self._held.values() for each in self._judge(hold, now)]

    def report_again(self) -> None:
        for hold in self._held.values():
            hold.reported = False

    @property
    def now_held(self) -> list[str]:
        return sorted(hold.pod for hold in self._held.values())

    def _note(self, seen: Seen) -> None:
        if seen.uid not in self._held:
            created = seconds(seen.object["metadata"]["creationTimestamp"])
            scope = scopes.namespace(seen.object["metadata"].get("namespace", ""))
            self._held[seen.uid] = Holds.Hold(name(seen.object), created, scope)
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
        excused = self._excuses.within(deadline, now, hold.scope)
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

    def report_again(self) -> None:
        self._reported.clear()

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


def _is_ready(thing: dict) -> bool:
    conditions = thing.get("status", {}).get("conditions") or []
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
            others = [each for each in _changed_by(seen) if each != START]
            return self._report(seen, f"by {seen.by}: {', '.join(others)}") if others else []
        before = self._as_bound[seen.uid]
        changed = [
            field for field in sorted(before.keys() | now.keys())
            if before.get(field) != now.get(field)
        ]
        if START in changed and START not in before:
            changed.remove(START)
            before[START] = now[START]
        if not changed:
            return []
        changes = (f"{each}: {before.get(each)} -> {now.get(each)}" for each in changed)
        return self._report(seen, "; ".join(changes))

    def _report(self, seen: Seen, words: str) -> list[Violation]:
        if seen.uid in self._reported:
            return []
        self._reported.add(seen.uid)
        return [Violation(seen.at, BOUND, name(seen.object), words)]


def _changed_by(seen: Seen) -> list[str]:
    """The key of an annotation, or the path, of each change in a patch by cachewarm. Nothing was
    seen of the pod between its binding and this patch that the pod could be compared with."""
    if not seen.by.startswith(ACCOUNTS):
        return []
    if isinstance(seen.request, list):
        paths = [each["path"] for each in seen.request if each.get("op") != "test"]
        notes = "/metadata/annotations/"
        return [path.removeprefix(notes).replace("~1", "/") for path in paths]
    if isinstance(seen.request, dict):
        metadata = seen.request.get("metadata") or {}
        parts = [key for key in ("labels", "finalizers") if metadata.get(key)]
        return [*(metadata.get("annotations") or {}), *parts, *(seen.request.get("spec") or {})]
    return []


def _fields(pod: dict) -> dict[str, str]:
    out = {f"spec.{key}": json.dumps(value, sort_keys=True) for key, value in pod["spec"].items()}
    out["labels"] = json.dumps(pod["metadata"].get("labels") or {}, sort_keys=True)
    return {**out, **annotations(pod)}


class FailedPods:
    """Rule 4."""

    def __init__(self, excuses: Excuses, tally: Tally):
        self._excuses = excuses
        self._tally = tally
        self._started: set[tuple[str, str, str]] = set()
        self._reported: set[str] = set()

    def see(self, seen: Seen) -> list[Violation]:
        pod = seen.object
        if seen.type == "DELETED" or not _is_injected(pod) or not seen.by.startswith(KUBELETS):
            return []
        out = []
        reported = pod.get("status", {})
        for status in [*(reported.get("initContainerStatuses") or []),
                       *(reported.get("containerStatuses") or [])]:
            for state in (status.get("state") or {}, status.get("lastState") or {}):
                self._count(seen.uid, status["name"], state)
                out += self._judge(seen, status["name"], state.get("terminated"))
        return out

    def _count(self, uid: str, container: str, state: dict) -> None:
        started = (state.get("running") or state.get("terminated") or {}).get("startedAt")
        if started:
            self._started.add((uid, container, started))
            self._tally.started = len(self._started)

    def _judge(self, seen: Seen, container: str, ended: dict | None) -> list[Violation]:
        if not ended or ended.get("reason") != "Error" or seen.uid in self._reported:
            return []
        node = scopes.node(seen.object["spec"].get("nodeName", ""))
        begin, end = seconds(ended["startedAt"]), seconds(ended["finishedAt"])
        is_full = self._excuses.touches(node, begin - DISK_SECONDS, end + DISK_SECONDS)
        if ended["exitCode"] not in OWN_EXIT_CODES or is_full or seen.uid in self._excuses.killed:
            return []
        self._reported.add(seen.uid)
        words = f"container {container} ended with {ended['exitCode']} after {end - begin:.0f} s"
        return [Violation(seen.at, FAILED, name(seen.object), words)]


def _is_injected(pod: dict) -> bool:
    return any(each["name"] == VOLUME for each in pod["spec"].get("volumes") or [])


class Operators:
    """Excuses the time in which kubelets report no operator that is Ready, after the chaos killed
    all of them. Operators that fail without it excuse nothing."""

    def __init__(self, excuses: Excuses, tally: Tally):
        self._excuses = excuses
        self._tally = tally
        self._ready: set[str] = set()
        self._away: Span | None = None

    def see(self, seen: Seen) -> None:
        labels = seen.object["metadata"].get("labels") or {}
        is_operator = labels.get("app.kubernetes.io/component") == "operator"
        if seen.object["metadata"].get("namespace") != SYSTEM or not is_operator:
            return
        had = bool(self._ready)
        is_up = not seen.gone and _is_ready(seen.object)
        (self._ready.add if is_up else self._ready.discard)(seen.uid)
        if had and not self._ready:
            self._tally.away += 1
            kills = self._excuses.operators_killed
            if any(seen.at - KILL_SECONDS <= kill <= seen.at for kill in kills):
                self._away = self._excuses.begin(seen.at, limit=AWAY_MAX)
        elif self._ready and self._away:
            self._excuses.end(self._away, seen.at + BACK_SECONDS)
            self._away = None


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
        self._failed = FailedPods(self.excuses, self.tally)
        self._operators = Operators(self.excuses, self.tally)
        self._pods: set[str] = set()

    def see(self, seen: Seen) -> None:
        if seen.kind == "Pod":
            self._pods.add(seen.uid)
            self.tally.pods = len(self._pods)
            self._operators.see(seen)
            self.violations += self._holds.see(seen)
            self.violations += self._bound.see(seen)
            self.violations += self._failed.see(seen)
        self.violations += self._builders.see(seen)

    def report_again(self) -> None:
        """Reports a violation that lasts also if it was reported before."""
        self._holds.report_again()
        self._builders.report_again()

    def look(self, now: float) -> None:
        self.violations += self._holds.look(now)
        self.violations += self._builders.look(now)

    @property
    def now_held(self) -> list[str]:
        return self._holds.now_held
