# SPDX-License-Identifier: Apache-2.0
"""Background processes known by pid and start time, so that a re-used pid is never mistaken
for the process."""

import os
import signal
import subprocess
import time
from pathlib import Path

from .settings import ClusterError


def run(
    *command: object, check: bool = True, text_in: str | None = None
) -> subprocess.CompletedProcess:
    """Runs a command to its end. With `check` a failure raises with the last lines that the
    command printed."""
    argv = [str(c) for c in command]
    done = subprocess.run(argv, input=text_in, capture_output=True, text=True)
    if check and done.returncode != 0:
        words = (done.stderr or done.stdout).strip()[-600:]
        raise ClusterError(f"{' '.join(argv[:4])} ... ended with {done.returncode}: {words}")
    return done


def start_time(pid: int) -> str | None:
    """The kernel's start time of a live process; None for the dead and for zombies. A process
    whose first thread has ended lives, sockets and all, until its last thread has."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ended = fields[0] in "ZX" and len(os.listdir(f"/proc/{pid}/task")) <= 1
    except (OSError, IndexError):
        return None
    return None if ended else fields[19]


def children(pid: int) -> list[int]:
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class Daemon:
    """A process that outlives this command. Files: STATE/NAME.pid ("pid starttime") and
    NAME.log."""

    def __init__(self, directory: Path, name: str):
        self.name = name
        self.log = directory / f"{name}.log"
        self._pidfile = directory / f"{name}.pid"

    def pid(self) -> int | None:
        try:
            pid, started = self._pidfile.read_text().split()
        except (OSError, ValueError):
            return None
        return int(pid) if start_time(int(pid)) == started else None

    def start(self, *command: object, env: dict[str, str] | None = None) -> None:
        if self.pid():
            return
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log:
            child = subprocess.Popen(
                [str(c) for c in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=env,
                start_new_session=True,
            )
        partial = self._pidfile.with_suffix(".new")
        partial.write_text(f"{child.pid} {start_time(child.pid) or 'gone'}\n")
        partial.rename(self._pidfile)

    def kill(self, sig: int = signal.SIGTERM, grace: float = 4.0) -> None:
        """Sends the signal, waits up to `grace` seconds, then kills."""
        pid = self.pid()
        if pid:
            _send(pid, sig)
            deadline = time.monotonic() + grace
            while self.pid() and time.monotonic() < deadline:
                time.sleep(0.05)
            while self.pid():
                _send(pid, signal.SIGKILL)
                time.sleep(0.05)
        self._pidfile.unlink(missing_ok=True)

    def require_alive(self) -> None:
        if not self.pid():
            raise ClusterError(f"{self.name} ended; last lines of {self.log}: {self.tail()}")

    def tail(self) -> str:
        try:
            return self.log.read_text(errors="replace")[-800:].strip()
        except OSError:
            return "(no log)"


def _send(pid: int, sig: int) -> None:
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass
