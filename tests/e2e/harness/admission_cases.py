# SPDX-License-Identifier: Apache-2.0
"""The table of tests/admission against what the API server does to new pods, by dry run. What has
to come out is created too, where there is no warmup: so both have the server's own defaults."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import yaml

from .cluster import REPOSITORY
from .definitions import warmup
from .kubectl import Kubectl
from .waiting import wait_for
from .warmup import injected

GROUPS_AT_ONCE = 8
INJECTION = {
    "labels": {"app": "llama"},
    "container": "c",
    "gate": False,
    "env": [{"name": "TORCHINDUCTOR_CACHE_DIR", "value": "/var/cache/cachewarm/inductor"}],
}


@dataclass(frozen=True)
class Case:
    name: str
    warmups: dict  # name → what differs from INJECTION; None: not injected
    pod: dict
    expected: list[dict]  # one of these

    @property
    def group(self) -> str:
        """Cases of the same warmups share a namespace."""
        return json.dumps(self.warmups, sort_keys=True)


def read() -> list[Case]:
    found = []
    for path in sorted((REPOSITORY / "tests" / "admission").glob("*.yaml")):
        for each in filter(None, yaml.safe_load_all(path.read_text())):
            expected = each["expected"]
            if expected == "same":
                expected = each["pod"]
            listed = expected if isinstance(expected, list) else [expected]
            warmups = each.get("warmups", {"llama": {}})
            found.append(Case(each["case"], warmups, each["pod"], listed))
    return found


class Table:
    """Every case, tried: `outcome` is what became of its pod, `wanted` what might have."""

    def __init__(self, admin: Kubectl, cases: list[Case]):
        self._admin = admin
        self._cases = cases
        self._prefix = f"cases-{uuid.uuid4().hex[:5]}"
        self._namespaces: list[str] = []
        self._outcomes: dict[str, dict] = {}
        self._wanted: dict[str, list[dict]] = {}

    def __enter__(self) -> "Table":
        plain = self._namespace("plain")
        groups: dict[str, list[Case]] = {}
        for case in self._cases:
            groups.setdefault(case.group, []).append(case)
        places = [self._namespace(str(number)) for number in range(len(groups))]
        # The policy needs a moment to see each group's warmups: the groups wait together.
        with ThreadPoolExecutor(GROUPS_AT_ONCE) as pool:
            list(pool.map(self._try_group, places, [plain] * len(places), groups.values()))
        return self

    def __exit__(self, *unused) -> None:
        self._admin.run("delete", "namespace", *self._namespaces, "--wait=false")

    def outcome(self, case: Case) -> dict:
        return self._outcomes[case.name]

    def wanted(self, case: Case) -> list[dict]:
        return self._wanted[case.name]

    def _namespace(self, title: str) -> Kubectl:
        name = f"{self._prefix}-{title}"
        kubectl = self._admin.within(name)
        kubectl.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._namespaces.append(name)
        wait_for("default ServiceAccount", lambda: kubectl.get("serviceaccount", "default"), 30)
        return kubectl

    def _try_group(self, kubectl: Kubectl, plain: Kubectl, cases: list[Case]) -> None:
        uids = {name: self._make(kubectl, name, d) for name, d in cases[0].warmups.items()}
        for name, differs in cases[0].warmups.items():
            if differs is not None:
                _await_injection(kubectl, name, {**INJECTION, **differs})
        outcomes = _create(kubectl, [case.pod for case in cases])
        for case, outcome in zip(cases, outcomes, strict=True):
            self._outcomes[case.name] = outcome
            filled = [_fill(pod, kubectl.namespace, uids) for pod in case.expected]
            self._wanted[case.name] = _create(plain, filled)

    def _make(self, kubectl: Kubectl, name: str, differs: dict | None) -> str:
        thing = warmup(name, selector={"matchLabels": {"app": "nobody"}}, paused=True)
        if differs is not None:
            thing["metadata"]["labels"] = {"cachewarm.io/inject": "true"}
        made = kubectl.create(thing)
        status = {"injection": {**INJECTION, **(differs or {})}}
        client = kubectl.within(kubectl.namespace)
        client._base = [*kubectl._base, *_AS_OPERATOR]
        client.patch("cw", name, {"status": status}, "--subresource=status")
        return made["metadata"]["uid"]


_AS_OPERATOR = ("--as=system:serviceaccount:cachewarm-system:cachewarm-operator",)


def _await_injection(kubectl: Kubectl, name: str, injection: dict) -> None:
    """Waits until admission has seen this warmup. If two warmups match, either may win."""
    container = {"name": injection["container"], "image": "i"}
    probe = {
        "metadata": {"name": "probe", "labels": injection["labels"]},
        "spec": {
            "containers": [container],
            "nodeSelector": injection.get("nodeSelector", {}),
        },
    }
    wait_for(
        f"pods of {name} are injected", lambda: injected(dry_runs(kubectl, [probe])[0]), 60, kubectl
    )


def _fill(pod: dict, namespace: str, uids: dict[str, str]) -> dict:
    name = pod["metadata"].get("annotations", {}).get("cachewarm.io/warmup", "")
    text = json.dumps(pod).replace("$NAMESPACE", namespace)
    return json.loads(text.replace("$UID", uids.get(name, "")))


def dry_runs(kubectl: Kubectl, pods: list[dict]) -> list[dict]:
    """Returns each pod as the server would create it."""
    made = []
    for pod in pods:
        spec = {"automountServiceAccountToken": False, **pod["spec"]}
        thing = {"apiVersion": "v1", "kind": "Pod", **pod, "spec": spec}
        made.append(kubectl.create(thing, "--dry-run=server"))
    return made


def _create(kubectl: Kubectl, pods: list[dict]) -> list[dict]:
    """Returns the pods as the server would create them, without fields that are unique per pod."""
    return [
        {
            "labels": pod["metadata"].get("labels", {}),
            "annotations": pod["metadata"].get("annotations", {}),
            "spec": pod["spec"],
        }
        for pod in dry_runs(kubectl, pods)
    ]
