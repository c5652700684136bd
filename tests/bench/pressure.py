# SPDX-License-Identifier: Apache-2.0
"""How long a run waited for a processor and for the disk, by the kernel's pressure counters (PSI)
of a cgroup v2. They distinguish a disk that delays a run from programs that use the processors.
"""
import contextlib
import os
import re
import threading
import time
from pathlib import Path

from memory_cgroups import ENTER, remove_cgroup

# A machine with cgroup v1 may have v2 beside it, without controllers.
ROOTS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
PERIOD = 0.02


def total_of(text, kind):
    """Returns the total of the line `some` or `full` of a pressure file, in seconds. Pure."""
    return int(re.search(rf"^{kind} .*total=(\d+)", text, re.MULTILINE).group(1)) / 1e6


def waits_until(samples, end):
    """Returns the waits at the last of the (time, processor, disk) samples up to `end`. Pure."""
    found = [sample for sample in samples if sample[0] <= end]
    return {"cpu_wait": found[-1][1], "disk_wait": found[-1][2]} if found else {}


class Pressure:
    """Reads the counters of one cgroup fifty times a second until its block ends."""

    def __init__(self, folder):
        self.folder, self.samples, self.stopped = folder, [], threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)

    def sample(self):
        """Runs on the thread. Of the processors counts the time in which any thread of the run
        waited, of the disk the time in which all of its threads did: one thread of a fetch starts
        the write-back, and may wait."""
        while not self.stopped.wait(PERIOD):
            self.samples.append((time.monotonic(),
                                 total_of((self.folder / "cpu.pressure").read_text(), "some"),
                                 total_of((self.folder / "io.pressure").read_text(), "full")))

    def inside(self, command):
        """Returns a command that runs in the cgroup."""
        return ["bash", "-c", ENTER, str(self.folder), *command]

    def waits(self, end):
        """Returns {"cpu_wait", "disk_wait"}, in seconds, until that time of time.monotonic()."""
        return waits_until(self.samples, end)


class NoPressure:
    """Stands for Pressure on a kernel without the counters."""

    def inside(self, command):
        """Returns the command itself."""
        return command

    def waits(self, _end):
        """Returns nothing."""
        return {}


@contextlib.contextmanager
def watched():
    """Yields the Pressure of a new cgroup, or a NoPressure."""
    root = next((root for root in ROOTS if (root / "cgroup.controllers").exists()), None)
    if not root or not Path("/proc/pressure/io").exists():
        yield NoPressure()
        return
    folder = root / f"cachewarm-bench-pressure-{os.getpid()}"
    folder.mkdir()
    found = Pressure(folder)
    found.thread.start()
    try:
        yield found
    finally:
        found.stopped.set()
        found.thread.join()
        remove_cgroup(folder)
