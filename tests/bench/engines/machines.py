# SPDX-License-Identifier: Apache-2.0
"""Machines that have never compiled: the same computer with its own /tmp, home directory and /app,
and with /data and /cache on a volume that machines share. Needs root, for mount namespaces."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MOUNTS = ("/tmp", "/app", "/data", "/cache")
SECONDS_MAX = 900
CHECKOUT = Path(__file__).resolve().parents[3]  # has the programs; a machine sees it also in /tmp
_ENTER = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc",
          "--kill-child")
_SCRIPT = """
tmp=$1 app=$2 data=$3 cache=$4 checkout=$5; shift 5
mount --bind "$app" /app; mount --bind "$data" /data; mount --bind "$cache" /cache
if [[ $checkout == /tmp/* ]]; then
    mkdir -p "$tmp/${checkout#/tmp/}"; mount --bind "$checkout" "$tmp/${checkout#/tmp/}"
fi
mount --rbind "$tmp" /tmp; cd /tmp
exec /usr/bin/python3 -S "$@"
"""
# The first process of the namespace. The kernel does not count the processor time of processes that
# are still there when it ends, such as compile workers, so it ends and awaits them itself.
_INIT = """
import os, signal, subprocess, sys
status = subprocess.call(sys.argv[1:])
try:
    os.kill(-1, signal.SIGKILL)
    while True:
        os.wait()
except (ProcessLookupError, ChildProcessError):
    sys.exit(status)
"""


class RunFailed(Exception):
    """A program of the bench did not end well; the text has its last lines."""


@dataclass(frozen=True)
class Run:
    """One process: the line that it printed, and its times."""

    result: dict
    cpu: float  # seconds of all its processes
    before: float  # seconds from the command to the start of the program
    after: float  # seconds from the end of the program to the end of the command


class Volume:
    """A directory that several machines see as /data and /cache; empty at first."""

    def __init__(self, parent):
        self.path = Path(tempfile.mkdtemp(prefix="volume-", dir=parent))
        for name in ("data", "cache"):
            (self.path / name).mkdir()
        (self.path / "cache/model/compile_cache").mkdir(parents=True)

    def bytes_of(self, pattern):
        """Bytes of the files below `pattern`, a path with wildcards."""
        roots = self.path.glob(pattern)
        files = {each for root in roots for each in [root, *root.rglob("*")] if each.is_file()}
        return sum(each.stat().st_size for each in files)


class Machine:
    """One machine; its files stay for later runs on it."""

    def __init__(self, parent, volume):
        self.path = Path(tempfile.mkdtemp(prefix="machine-", dir=parent))
        for name in ("tmp/home", "app"):
            (self.path / name).mkdir(parents=True)
        (self.path / "tmp").chmod(0o1777)
        self.volume = volume

    @property
    def tmp(self):
        """Its /tmp, as seen from outside."""
        return self.path / "tmp"

    def run(self, command, environment):
        """Runs a program of the bench, whose environment is `environment` and little more."""
        shared = [self.volume.path / name for name in ("data", "cache")]
        folders = [self.tmp, self.path / "app", *shared, CHECKOUT]
        whole = [*_ENTER, "bash", "-e", "-c", _SCRIPT, "bash", *map(str, folders), "-c", _INIT,
                 *command]
        base = {"PATH": os.environ["PATH"], "HOME": "/tmp/home", "LANG": "C.UTF-8"}
        with tempfile.TemporaryFile() as output:
            began = time.clock_gettime(time.CLOCK_BOOTTIME)
            process = subprocess.Popen(whole, env={**base, **environment}, stdout=output,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            try:
                status, usage = _wait(process)
            finally:
                if process.returncode is None:  # the bench was interrupted
                    process.kill()
            ended = time.clock_gettime(time.CLOCK_BOOTTIME)
            output.seek(0)
            text = output.read().decode(errors="replace")
        result = parse(text)
        if status != 0 or result is None:
            raise RunFailed(f"exit status {status}: {' '.join(command)}\n{text[-3000:]}")
        return Run(result, usage.ru_utime + usage.ru_stime, result["started"] - began,
                   ended - result["ended"])

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def _wait(process):
    """Waits for a process with a limit; returns its exit status and its resource usage."""
    limit = time.monotonic() + SECONDS_MAX
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if time.monotonic() > limit:
            process.kill()
            limit = float("inf")
        time.sleep(0.005)


def parse(text):
    """Returns the object of the last RESULT line of a program, or None."""
    lines = [line for line in text.splitlines() if line.startswith("RESULT ")]
    return json.loads(lines[-1].removeprefix("RESULT ")) if lines else None


class MountPoints:
    """A context in which the directories of MOUNTS exist; removes those that it made."""

    def __enter__(self):
        self._made = [Path(each) for each in MOUNTS if not Path(each).exists()]
        for each in self._made:
            each.mkdir()
        return self

    def __exit__(self, *_):
        for each in self._made:
            each.rmdir()
