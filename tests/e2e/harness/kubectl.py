# SPDX-License-Identifier: Apache-2.0
"""kubectl with objects in and out. Every call has a timeout; a failure carries kubectl's own
words."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from . import reader


class KubectlError(Exception):
    pass


@contextmanager
def _as_kubectl_fails() -> Iterator[None]:
    try:
        yield
    except reader.ReadError as error:
        raise KubectlError(str(error)) from error


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
        content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        flags = ["--server-side", "--force-conflicts"] if server_side else []
        self.run("apply", *flags, "-f", "-", text_in=content)

    def create(self, thing: dict, *flags: str) -> dict:
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
        """None where only kubectl itself can read: as somebody else, by another configuration."""
        flags = self._base[1:]
        plain = len(flags) == 1 and flags[0].startswith("--kubeconfig=") and reader.knows(kind)
        path = flags[0].removeprefix("--kubeconfig=") if plain else ""
        return reader.of(path) if path.endswith("/admin.kubeconfig") else None

    def patch(self, kind: str, name: str, patch: object, *flags: str) -> None:
        style = "json" if isinstance(patch, list) else "merge"
        self.run("patch", kind, name, f"--type={style}", *flags, "-p", json.dumps(patch))

    def delete(self, kind: str, name: str, *flags: str) -> None:
        self.run("delete", kind, name, "--ignore-not-found", *flags)

    def kill_pod(self, name: str) -> None:
        """Gone at once, without a grace period."""
        self.delete("pod", name, "--grace-period=0", "--force", "--wait=false")

    def scale(self, kind: str, name: str, replicas: int) -> None:
        self.run("scale", kind, name, f"--replicas={replicas}")

    def logs(self, pod: str, *flags: str) -> str:
        return self.run("logs", pod, *flags, check=False)

    def start(self, *words: str, **how: object) -> subprocess.Popen:
        """Goes on in the background; the caller ends it. `how` is for Popen."""
        return subprocess.Popen([*self._base, f"--namespace={self.namespace}", *words], **how)

    def execute(self, pod: str, *command: str) -> str:
        return self.run("exec", pod, "--", *command)
