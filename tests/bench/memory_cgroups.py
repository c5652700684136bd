# SPDX-License-Identifier: Apache-2.0
"""A memory cgroup around one run: its limit, and what the kernel counted in it. The page cache of
files that the run reads or writes counts, as it does in a container.
"""
import contextlib
import errno
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from processes import CommandFailed

MIB = 1 << 20
REMOVE_SECONDS = 30
LIMITS_MIB = (64, 96, 128, 192, 256, 512, None)  # None: no limit
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
# Moves the shell into the cgroup of $0, and then becomes the command.
ENTER = 'echo $$ >"$0/cgroup.procs" && exec "$@"'


@dataclass(frozen=True)
class Counted:
    """`peak` bytes with the page cache counted, how often the limit was reached so that the kernel
    reclaimed memory, and how many processes it killed for want of memory."""
    peak: int
    reclaims: int
    oom_kills: int


def number_after(text, name):
    """Returns the number after `name` in a cgroup file with one name and one value per line; 0 if
    the file has no such line."""
    found = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
    return int(found.group(1)) if found else 0


def counted_v1(files):
    """Returns the counters, given a function that reads a file of a cgroup v1."""
    return Counted(int(files("memory.max_usage_in_bytes")), int(files("memory.failcnt")),
                   number_after(files("memory.oom_control"), "oom_kill"))


def counted_v2(files):
    """Returns the counters, given a function that reads a file of a cgroup v2."""
    events = files("memory.events")
    return Counted(int(files("memory.peak")), number_after(events, "max"),
                   number_after(events, "oom_kill"))


class MemoryCgroup:
    """One cgroup in use. `number` is its version, 1 or 2."""

    def __init__(self, folder, number):
        self.folder, self.version = folder, number

    def limit(self, size):
        """Sets the limit in bytes."""
        name = "memory.limit_in_bytes" if self.version == 1 else "memory.max"
        (self.folder / name).write_text(str(size))

    def inside(self, command):
        """Returns a command that runs in the cgroup."""
        return ["bash", "-c", ENTER, str(self.folder), *command]

    def counted(self):
        """Returns what the kernel has counted so far."""
        def read(name):
            return (self.folder / name).read_text()
        return counted_v1(read) if self.version == 1 else counted_v2(read)


def version():
    """Returns the version of the cgroups that have the memory controller here: 1 or 2."""
    return 1 if (V1 / "memory.limit_in_bytes").exists() else 2


def remove_cgroup(folder):
    """Removes a cgroup, when the processes in it that were killed are gone."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while True:
        try:
            folder.rmdir()
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


@contextlib.contextmanager
def memory_cgroup(limit_mib):
    """Yields a new cgroup with this limit (None: no limit) below the root group, so that no other
    limit applies. Swap is not limited: the counters assume a machine without it."""
    if version() == 2:
        controllers = V2 / "cgroup.subtree_control"
        if not controllers.exists():
            raise CommandFailed(f"neither {V1} nor {V2} has the memory controller")
        controllers.write_text("+memory")
    folder = (V1 if version() == 1 else V2) / f"cachewarm-bench-{os.getpid()}"
    folder.mkdir()
    try:
        group = MemoryCgroup(folder, version())
        if limit_mib is not None:
            group.limit(limit_mib * MIB)
        yield group
    finally:
        remove_cgroup(folder)


def chart_memory(values):
    """Returns (request, limit) in MiB of the agent in the text of the chart's values.yaml."""
    agent = re.search(r"^agent:\n((?:[ #].*\n|\n)+)", values, re.MULTILINE)
    found = agent and re.search(r"requests: \{.*memory: (\d+)Mi\}\s+limits: \{.*memory: (\d+)Mi\}",
                                agent.group(1))
    if not found:
        raise ValueError("values.yaml: agent.resources has no memory in Mi")
    return int(found.group(1)), int(found.group(2))
