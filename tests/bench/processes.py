# SPDX-License-Identifier: Apache-2.0
"""Child processes with a time limit, measured, and always ended."""
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 10
OUTPUT_CHARACTERS = 2000


class CommandFailed(Exception):
    """A command exited with a status other than 0, or was killed at its time limit."""


@dataclass(frozen=True)
class Sample:
    """The cost of one run. `rss_mb` is its largest process, in 2^20 bytes; `synced` the seconds
    until its bytes were also on disk; `size` the bytes that it wrote or transferred; `begin` the
    time of time.monotonic() at its start."""
    wall: float
    cpu: float
    rss_mb: float
    synced: float = 0.0
    size: int = 0
    notes: dict = field(default_factory=dict)
    begin: float = 0.0


def kill_group(process):
    """Kills a process that leads its own session, and its children."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def measure(command, log, timeout, cwd=None):
    """Runs a list of words. Returns a Sample; raises CommandFailed with the end of its output.

    The peak comes from time(1), because the value of wait4 starts at the size of this Python."""
    peak = Path(f"{log}.peak")
    command = ["/usr/bin/time", "--quiet", "--format=%M", f"--output={peak}", *command]
    with open(log, "w", encoding="utf-8", errors="replace") as out:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, cwd=cwd, start_new_session=True)
        timer = threading.Timer(timeout, kill_group, [process])
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.monotonic() - begin
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            timer.cancel()
            kill_group(process)
            if process.returncode is None:
                process.wait()
    if process.returncode:
        late = f" (killed at its limit of {timeout} s)" if wall >= timeout else ""
        raise CommandFailed(f"{' '.join(command[4:])}: exit status {process.returncode}{late}\n"
                            f"{Path(log).read_text()[-OUTPUT_CHARACTERS:]}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, int(peak.read_text()) / 1024, begin=begin)


def shell(command, log, timeout):
    """Like measure, for a line of bash with pipefail."""
    return measure(["bash", "-euo", "pipefail", "-c", command], log, timeout)


def quiet(*command, timeout=120):
    """Runs a command without measuring it. Returns its output; raises CommandFailed."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=timeout)
    if done.returncode:
        raise CommandFailed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n"
                            f"{done.stderr[-OUTPUT_CHARACTERS:]}")
    return done.stdout


class Server:
    """A program that serves until the `with` block or this process ends. `ready` is called until it
    returns True."""

    def __init__(self, command, log, ready, seconds=30):
        self.command, self.log, self.ready, self.seconds = command, log, ready, seconds
        self.process = None

    def __enter__(self):
        with open(self.log, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.command],
                                            stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=subprocess.STDOUT, start_new_session=True)
        deadline = time.monotonic() + self.seconds
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise CommandFailed(f"{self.command[0]} does not serve:\n"
                                    f"{Path(self.log).read_text()[-OUTPUT_CHARACTERS:]}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        kill_group(self.process)
        self.process.wait()

    def cpu(self):
        """Returns the CPU seconds so far (proc(5): utime, stime)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def reset_peak(self):
        """Resets peak() (proc(5): clear_refs)."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak(self):
        """Returns the largest resident set since reset_peak, in 2^20 bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return 0.0
