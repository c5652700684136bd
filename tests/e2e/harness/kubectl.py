# SPDX-License-Identifier: Apache-2.0
"""kubectl with objects in and out. Every call has a timeout; a failure carries kubectl's own
words."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from . import reader

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_DRY_RUN = "--dry-run=server"
_OF_STATUS = "--subresource=status"


class KubectlError(Exception):
    pass


class ExistsError(KubectlError):
    """There is an object of that name already."""


@contextmanager
def _as_kubectl_fails() -> Iterator[None]:
    try:
        yield
    except reader.ExistsError as error:
        raise ExistsError(str(error)) from error
    except reader.ReadError as error:
        raise KubectlError(str(error)) from error


def _as_applied(thing: dict, namespace: str) -> dict:
    """With the annotation from which `kubectl apply` later knows which fields it has set."""
    metadata = {"namespace": namespace, **thing["metadata"]}
    if reader.is_of_the_cluster(thing):
        del metadata["namespace"]
    notes = metadata.get("annotations", {})
    given = json.dumps({**thing, "metadata": {"annotations": {}, **metadata}})
    metadata["annotations"] = {**notes, _LAST_APPLIED: given}
    return {**thing, "metadata": metadata}


class Kubectl:
    """One kubectl binary, one kubeconfig ("": what kubectl finds by itself), one default
    namespace."""

    def __init__(self, program: str, kubeconfig: str = "", namespace: str = "default"):
        self._base = [program, *([f"--kubeconfig={kubeconfig}"] if kubeconfig else [])]
        self.namespace = namespace

    def within(self, namespace: str) -> "Kubectl":
        other = Kubectl("", namespace=namespace)
        other._base = self._base
        return other

    def run(self, *words: str, text_in: str | None = None, check=True, seconds=60.0) -> str:
        command = [*self._base, f"--namespace={self.namespace}", *words]
        try:
            done = subprocess.run(
                command, input=text_in, capture_output=True, text=True, timeout=seconds
            )
        except subprocess.TimeoutExpired as error:
            raise KubectlError(f"kubectl {' '.join(words)}: no answer in {seconds} s") from error
        if check and done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(words)}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def apply(self, *objects: dict, server_side=False) -> None:
        """As `kubectl apply`, which is started only where something is there already."""
        found = None if server_side else self._client()
        if found and all(map(reader.knows_kind_of, objects)):
            objects = self._create_new(found, objects)
        if objects:
            self._apply(objects, server_side)

    def _create_new(self, client: "reader.Reader", objects: tuple[dict, ...]) -> tuple[dict, ...]:
        """Creates objects up to the first that exists; returns that one and those after it."""
        for number, thing in enumerate(objects):
            try:
                with _as_kubectl_fails():
                    client.create(self.namespace, _as_applied(thing, self.namespace), False)
            except ExistsError:
                return objects[number:]
        return ()

    def _apply(self, objects: tuple[dict, ...], server_side: bool) -> None:
        content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        flags = ["--server-side", "--force-conflicts"] if server_side else []
        self.run("apply", *flags, "-f", "-", text_in=content)

    def create(self, thing: dict, *flags: str) -> dict:
        found = self._client() if reader.knows_kind_of(thing) and {*flags} <= {_DRY_RUN} else None
        if found:
            with _as_kubectl_fails():
                return found.create(self.namespace, thing, _DRY_RUN in flags)
        return json.loads(
            self.run("create", "-f", "-", "-o", "json", *flags, text_in=json.dumps(thing))
        )

    def get(self, kind: str, name: str) -> dict | None:
        """The object, or None when there is none of that name."""
        if found := self._reader(kind):
            with _as_kubectl_fails():
                return found.get(kind, self.namespace, name)
        text = self.run("get", kind, name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def list(self, kind: str, selector: str = "", everywhere=False) -> list[dict]:
        if found := self._reader(kind):
            with _as_kubectl_fails():
                return found.list(kind, "" if everywhere else self.namespace, selector)
        flags = [f"--selector={selector}"] if selector else []
        flags += ["--all-namespaces"] if everywhere else []
        return json.loads(self.run("get", kind, "-o", "json", *flags))["items"]

    def _reader(self, kind: str) -> "reader.Reader | None":
        """None where only kubectl itself knows the kind."""
        return self._client() if reader.knows(kind) else None

    def _client(self) -> "reader.Reader | None":
        """None where only kubectl itself has the identity: by another configuration, for example.
        """
        flags = self._base[1:]
        path = flags[0].removeprefix("--kubeconfig=") if flags else ""
        user = flags[1].removeprefix("--as=") if len(flags) == 2 else ""
        plain = len(flags) == 1 or (len(flags) == 2 and flags[1].startswith("--as="))
        return reader.of(path, user) if plain and path.endswith("/admin.kubeconfig") else None

    def patch(self, kind: str, name: str, patch: object, *flags: str) -> None:
        found = self._reader(kind) if {*flags} <= {_OF_STATUS} else None
        if found:
            with _as_kubectl_fails():
                target = reader.Target(kind, self.namespace, name)
                found.patch(target, patch, "status" if flags else "")
            return
        style = "json" if isinstance(patch, list) else "merge"
        self.run("patch", kind, name, f"--type={style}", *flags, "-p", json.dumps(patch))

    def delete(self, kind: str, name: str, *flags: str) -> None:
        if found := self._reader(kind) if {*flags} == {"--wait=false"} else None:
            with _as_kubectl_fails():
                found.delete(reader.Target(kind, self.namespace, name), None)
            return
        self.run("delete", kind, name, "--ignore-not-found", *flags)

    def delete_all_pods(self) -> None:
        """Without a grace period. Returns before they are gone."""
        with _as_kubectl_fails():
            self._client().delete_all("pod", self.namespace)

    def kill_pod(self, name: str) -> None:
        """Gone at once, without a grace period."""
        found = self._client()
        if not found:
            self.delete("pod", name, "--grace-period=0", "--force", "--wait=false")
            return
        with _as_kubectl_fails():
            found.delete(reader.Target("pod", self.namespace, name), 0)

    def scale(self, kind: str, name: str, replicas: int) -> None:
        found = self._reader(kind)
        if not found:
            self.run("scale", kind, name, f"--replicas={replicas}")
            return
        with _as_kubectl_fails():
            target = reader.Target(kind, self.namespace, name)
            found.patch(target, {"spec": {"replicas": replicas}}, "scale")

    def logs(self, pod: str, *flags: str) -> str:
        """ "" while there is none."""
        found = None if flags or "/" in pod else self._client()
        if not found:
            return self.run("logs", pod, *flags, check=False)
        with _as_kubectl_fails():
            return found.logs(self.namespace, pod)

    def start(self, *words: str, **how: object) -> subprocess.Popen:
        """Goes on in the background; the caller ends it. `how` is for Popen."""
        return subprocess.Popen([*self._base, f"--namespace={self.namespace}", *words], **how)

    def execute(self, pod: str, *command: str) -> str:
        return self.run("exec", pod, "--", *command)
