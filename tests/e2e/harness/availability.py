# SPDX-License-Identifier: Apache-2.0
"""Records every change of one field of an object while a test works."""

import subprocess
import threading

from .kubectl import Kubectl


class Watched:
    """A context: kubectl watches the object from entering to leaving, or with name "" all of its
    kind; `lowest`, `highest` and `distinct` are of all values seen in between. An absent number
    counts as 0."""

    def __init__(self, kubectl: Kubectl, kind: str, name: str, field: str):
        which = (kind, name) if name else (kind,)
        self._words = ("get", *which, "--watch", f"--output=jsonpath={{.{field}}}{{'\\n'}}")
        self._kubectl = kubectl
        self._seen: list[str] = []
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
            self._seen.append(line.strip())
            self._first.set()

    def __repr__(self) -> str:
        return f"{' '.join(self._words[1:3])}: {' '.join(value or '-' for value in self._seen)}"

    @property
    def lowest(self) -> int:
        return min(int(value or 0) for value in self._seen)

    @property
    def highest(self) -> int:
        return max(int(value or 0) for value in self._seen)

    @property
    def distinct(self) -> set[str]:
        return set(self._seen)
