# SPDX-License-Identifier: Apache-2.0
"""What a workload's status said while a test worked: every change of one number, none missed."""

import subprocess
import threading

from .kubectl import Kubectl


class Watched:
    """A context: kubectl watches the object from entering to leaving; `lowest` and `highest` are
    of all values seen in between. An absent number counts as 0."""

    def __init__(self, kubectl: Kubectl, kind: str, name: str, field: str):
        self._words = ("get", kind, name, "--watch", f"--output=jsonpath={{.{field}}}{{'\\n'}}")
        self._kubectl = kubectl
        self._seen: list[int] = []
        self._first = threading.Event()

    def __enter__(self) -> "Watched":
        self._process = self._kubectl.start(*self._words, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._first.wait(30), f"no answer to {self._words}"
        return self

    def __exit__(self, *_) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        self._reader.join(timeout=30)

    def _read(self) -> None:
        for line in self._process.stdout:
            self._seen.append(int(line.strip() or 0))
            self._first.set()

    @property
    def lowest(self) -> int:
        return min(self._seen)

    @property
    def highest(self) -> int:
        return max(self._seen)
