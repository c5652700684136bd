# SPDX-License-Identifier: Apache-2.0
"""Controllers of other projects, the real ones: built by tools/setup/go-programs and installed by
the config/ of their own modules, certificates, rights and webhooks included."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from . import pods
from .kubectl import Kubectl
from .waiting import wait_for

_MOUNT = "/integration"
_USER = 65532  # of the image that they ship in


@dataclass(frozen=True)
class Integration:
    """One of them. Its pods run the program that was built here, from the machine's disk; nothing
    else of its manifests is changed."""

    name: str
    settings: dict = field(default_factory=dict)  # merged over its configuration

    @property
    def namespace(self) -> str:
        return f"{self.name}-system"

    @property
    def directory(self) -> Path:
        cache = Path(os.environ.get("CACHEWARM_CACHE") or Path.home() / ".cache" / "cachewarm")
        return (cache / self.name / "current").resolve()

    def install(self, admin: Kubectl) -> None:
        rendered = self._objects(admin)
        first = [o for o in rendered if o["kind"] in ("Namespace", "CustomResourceDefinition")]
        admin.apply(*first, server_side=True)
        names = _names(first, "CustomResourceDefinition")

        def served() -> bool:
            return all(_is_established(admin.get("crd", name)) for name in names)

        wait_for(f"the kinds of {self.name} are served", served, 30)
        for space in sorted({_space(thing) for thing in rendered}):
            rest = [o for o in rendered if o not in first and _space(o) == space]
            if rest:
                admin.within(space).apply(*rest, server_side=True)

    def wait_serving(self, admin: Kubectl, probe: dict) -> None:
        """Until its webhooks answer: `probe` is an object that they look at. kubelet puts the
        certificates that it makes for itself into its pods within a minute and a half."""
        system = admin.within(self.namespace)

        def ready() -> bool:
            found = [pod for pod in system.list("pods") if not pods.deleted(pod)]
            return bool(found) and all(pods.ready(pod) for pod in found)

        def answers() -> bool:
            return bool(admin.create(probe, "--dry-run=server"))

        wait_for(f"{self.name} is ready", ready, 240, system)
        wait_for(f"the webhooks of {self.name} answer", answers, 120, system)

    def remove(self, admin: Kubectl) -> None:
        """Its kinds first, while it is there to take its finalizers off their objects."""
        rendered = self._objects(admin)
        crds = _names(rendered, "CustomResourceDefinition")
        admin.run("delete", "crd", *crds, "--ignore-not-found", "--timeout=90s", seconds=120)
        for thing in rendered:
            if thing["kind"] != "CustomResourceDefinition":
                kind = f"{thing['kind']}.{thing['apiVersion'].rpartition('/')[0]}".rstrip(".")
                name = thing["metadata"]["name"]
                admin.within(_space(thing)).delete(kind, name, "--wait=false")

    def _objects(self, admin: Kubectl) -> list[dict]:
        config = self.directory / "config" / "default"
        if not config.exists():
            raise AssertionError(f"not built: tools/setup/go-programs {self.name}")
        text = admin.run("kustomize", str(config))
        rendered = [thing for thing in yaml.safe_load_all(text) if thing]
        for thing in rendered:
            if thing["kind"] == "Deployment":
                self._run_from_disk(thing["spec"]["template"]["spec"])
            if thing["kind"] == "ConfigMap":
                _merge(thing["data"], self.settings)
        return rendered

    def _run_from_disk(self, spec: dict) -> None:
        (manager,) = spec["containers"]
        manager.update(
            image="localhost/busybox:1",
            imagePullPolicy="IfNotPresent",
            command=[f"{_MOUNT}/manager"],
        )
        manager["volumeMounts"].append({"name": "program", "mountPath": _MOUNT, "readOnly": True})
        spec["volumes"].append({"name": "program", "hostPath": {"path": str(self.directory)}})
        spec["securityContext"]["runAsUser"] = _USER


def _names(things: list[dict], kind: str) -> list[str]:
    return [thing["metadata"]["name"] for thing in things if thing["kind"] == kind]


def _space(thing: dict) -> str:
    return thing["metadata"].get("namespace", "default")


def _is_established(crd: dict | None) -> bool:
    conditions = (crd or {}).get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _merge(data: dict, settings: dict) -> None:
    name = "controller_manager_config.yaml"
    data[name] = yaml.safe_dump({**yaml.safe_load(data[name]), **settings})
