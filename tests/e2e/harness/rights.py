# SPDX-License-Identifier: Apache-2.0
"""Compares the rules of an installation with the audit log of its API server: rights that no
program used, and requests that no rule allows. Pure: no cluster, no files."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

# User-Agent of operator, agent and CLI begin with it. Tests also use tokens of the accounts, by
# kubectl and by programs in Go: these requests prove nothing about the programs.
PROGRAMS = "cachewarm"
ACCOUNT = re.compile(r"system:serviceaccount:([^:]+):([^:]+)")
# Names the right that a request lacks. Server-side apply, for example, needs the verb create where
# the object does not exist: the API server checks it after it allowed the verb patch.
LACKS = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')


@dataclass(frozen=True, order=True)
class Right:
    """`name` and `namespace` are empty in a rule for all, and in a request for no single object."""

    account: str  # namespace/name
    group: str
    resource: str  # with its subresource: pods/status
    verb: str
    name: str = ""
    namespace: str = ""

    def covers(self, request: "Right") -> bool:
        same = (self.account, self.group, self.resource, self.verb) == (
            request.account, request.group, request.resource, request.verb)
        return same and self.name in ("", request.name) and self.namespace in (
            "", request.namespace)

    def __str__(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        of = f" {self.name}" if self.name else ""
        return f"{self.account}: {self.verb} {kind}{of}"


@dataclass(frozen=True)
class Rare:
    """A right that is used on rare paths only, so that a run of the tests may not use it."""

    right: Right
    reason: str
    test: str  # a file of the repository


@dataclass
class Requests:
    """The requests of the programs in audit logs. RBAC allowed those in `used`."""

    used: Counter[Right] = field(default_factory=Counter)
    forbidden: Counter[Right] = field(default_factory=Counter)
    lines: int = 0
    unreadable: int = 0  # an API server that is killed leaves a truncated line

    def add(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.lines += 1
            try:
                event = json.loads(line)
            except ValueError:
                self.unreadable += 1
                continue
            self._add(event)

    def _add(self, event: dict) -> None:
        account = ACCOUNT.fullmatch(event.get("user", {}).get("username", ""))
        about = event.get("objectRef", {})
        is_program = event.get("userAgent", "").startswith(PROGRAMS)
        # Every account may read paths that are no objects, by the role system:discovery.
        if not account or not is_program or "impersonatedUser" in event or "resource" not in about:
            return
        plural = "/".join(filter(None, (about["resource"], about.get("subresource"))))
        right = Right("/".join(account.groups()), about.get("apiGroup", ""), plural, event["verb"],
                      about.get("name", ""), about.get("namespace", ""))
        status = event.get("responseStatus", {})
        decision = event.get("annotations", {}).get("authorization.k8s.io/decision")
        if decision == "forbid":
            self.forbidden[right] += 1
            return
        self.used[right] += 1
        lacks = LACKS.search(status.get("message", "")) if status.get("code") == 403 else None
        if lacks:
            verb, resource, group = lacks.groups()
            self.forbidden[replace(right, verb=verb, resource=resource, group=group)] += 1
        elif right.verb == "patch" and status.get("code") == 201:
            self.used[replace(right, verb="create")] += 1


def grants(objects: Iterable[dict]) -> list[Right]:
    """The rights of service accounts in manifests, one for each verb, resource and name."""
    objects = list(objects)
    roles = {_key(each): each.get("rules") or [] for each in objects
             if each["kind"] in ("ClusterRole", "Role")}
    found: set[Right] = set()
    for binding in objects:
        if binding["kind"] not in ("ClusterRoleBinding", "RoleBinding"):
            continue
        namespace = binding["metadata"].get("namespace", "")
        role = binding["roleRef"]
        of = namespace if role["kind"] == "Role" else ""
        for subject in binding.get("subjects", []):
            if subject["kind"] == "ServiceAccount":
                account = f"{subject['namespace']}/{subject['name']}"
                for rule in roles[role["kind"], of, role["name"]]:
                    found |= _rights(account, rule, namespace)
    return sorted(found)


def _key(role: dict) -> tuple[str, str, str]:
    metadata = role["metadata"]
    return role["kind"], metadata.get("namespace", ""), metadata["name"]


def _rights(account: str, rule: dict, namespace: str) -> set[Right]:
    if "*" in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]:
        raise ValueError(f"{account}: a rule with * grants rights that nobody can list: {rule}")
    return {
        Right(account, group, resource, verb, name, namespace)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or [""]
    }


@dataclass(frozen=True)
class Comparison:
    unused: list[Right]  # granted, not used, not rare
    rare: list[Rare]  # granted, not used in this run
    missing: list[Right]  # forbidden, and no rule grants it
    # Forbidden although a rule grants it: while the API server starts, and while a test reinstalls
    # the rules, they are not in force.
    not_in_force: list[Right]
    outdated: list[Rare]  # rare, and no rule grants it

    @property
    def failures(self) -> int:
        return len(self.unused) + len(self.missing) + len(self.outdated)


def compare(
    granted: list[Right], requests: Requests, rare: Iterable[Rare], optional: Iterable[Right] = ()
) -> Comparison:
    """`optional`: rights that only a value of the chart grants, and that a test withdraws."""
    rare = list(rare)
    optional = list(optional)
    rarely = {each.right for each in rare}
    used = _covering(granted, requests.used)
    forbidden = sorted(requests.forbidden)
    is_granted = {each: bool(_covering(granted, [each])) for each in forbidden}
    return Comparison(
        unused=[right for right in granted if right not in used and right not in rarely],
        rare=[each for each in rare if each.right in granted and each.right not in used],
        missing=[
            each for each in forbidden
            if not is_granted[each] and not any(right.covers(each) for right in optional)
        ],
        not_in_force=[each for each in forbidden if is_granted[each]],
        outdated=[each for each in rare if each.right not in granted],
    )


def _covering(granted: list[Right], requests: Iterable[Right]) -> set[Right]:
    by_kind: dict[Right, set[Right]] = {}
    for request in requests:
        by_kind.setdefault(_kind(request), set()).add(request)
    return {right for right in granted
            if any(right.covers(each) for each in by_kind.get(_kind(right), ()))}


def _kind(right: Right) -> Right:
    return replace(right, name="", namespace="")


def report(result: Comparison, granted: list[Right], requests: Requests, complete: bool) -> str:
    """The text for people. In an incomplete run unused rights are no failure."""
    lines = [
        f"rights: {len(granted)} granted, {sum(requests.used.values())} requests in "
        f"{requests.lines} audit events"
        + (f", {requests.unreadable} unreadable lines" if requests.unreadable else "")
    ]
    lines += [f"missing, no rule grants it: {text}" for text in _summed(result.missing, requests)]
    unused = "unused" if complete else "unused in these tests"
    lines += [f"{unused}: {right}" for right in result.unused]
    lines += [f"listed as rare, but no rule grants it: {each.right}" for each in result.outdated]
    lines += [f"not used, rare: {each.right}: {each.reason} ({each.test})" for each in result.rare]
    lines += [f"granted, but not in force: {text}"
              for text in _summed(result.not_in_force, requests)]
    return "\n".join(lines)


def _summed(forbidden: list[Right], requests: Requests) -> list[str]:
    """One line for all objects of a kind, with the first of them as an example."""
    counts: Counter[Right] = Counter()
    examples: dict[Right, Right] = {}
    for each in forbidden:
        counts[_kind(each)] += requests.forbidden[each]
        examples.setdefault(_kind(each), each)
    return [f"{kind}: {count} requests, for example for "
            f"{examples[kind].namespace or 'no namespace'}/{examples[kind].name or 'no name'}"
            for kind, count in sorted(counts.items())]


OPERATOR = "cachewarm-system/cachewarm-operator"
RELEASE = "cachewarm-system/cachewarm-release"
_KIND_TEST = "tests/unit/lib/kube/discovery/optional_reflector_test.cc"
_NOT_SERVED = "the API server of the tests does not serve this kind"


def _optional(group: str, *resources: str) -> list[Rare]:
    return [Rare(Right(OPERATOR, group, resource, verb), _NOT_SERVED, _KIND_TEST)
            for resource in resources for verb in ("list", "watch")]


RARE = (
    *_optional("ray.io", "rayclusters"),
    *_optional("serving.kserve.io", "inferenceservices", "llminferenceservices"),
    Rare(
        Right(OPERATOR, "events.k8s.io", "events", "patch"),
        "only for an event that happens again within minutes",
        "tests/unit/lib/kube/runtime/event_series_test.cc",
    ),
    Rare(
        Right(OPERATOR, "cachewarm.io", "nodecaches", "delete"),
        "the garbage collector may delete the NodeCache of a deleted node first",
        "tests/unit/operator/controllers/nodes_test.cc",
    ),
    Rare(
        Right(RELEASE, "", "pods", "get"),
        "only after a patch that failed, or for a pod that is named",
        "tests/unit/cli/cluster/held_pods_test.cc",
    ),
)

# Only with engineLogs.enabled; engines/test_vllm.py grants it and withdraws it.
OPTIONAL = (Right(OPERATOR, "", "pods/log", "get"),)
