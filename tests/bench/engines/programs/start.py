# SPDX-License-Identifier: Apache-2.0
"""Shared by the programs of the bench: clocks, native objects, and the line that the bench reads.

A program prints "RESULT " and a JSON object: the fields of first_call(), and `started` and `ended`,
the times on the boot clock at which its process began and at which it had nothing left to do.
"""

import json
import os
import time
from pathlib import Path


def process_start():
    """When the kernel started this process, in seconds of the boot clock."""
    words = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    return int(words[19]) / os.sysconf("SC_CLK_TCK")


def files_of(directory, pattern):
    """The files of a directory by which a rebuilt one is noticed: path, inode and time."""
    found = set()
    for path in Path(directory).rglob(pattern):
        status = path.stat()
        found.add((str(path), status.st_ino, status.st_mtime_ns))
    return found


class FirstCall:
    """A context: the time and the new files of a first call. `result` is its part of the line."""

    def __init__(self, directory, pattern):
        self._directory, self._pattern = directory, pattern

    def __enter__(self):
        self._before = files_of(self._directory, self._pattern)
        self._began = time.monotonic()
        return self

    def __exit__(self, *_):
        seconds = time.monotonic() - self._began
        new = files_of(self._directory, self._pattern) - self._before
        self.result = {"first_call_seconds": seconds, "native_rebuilt": len(new)}


def report(**fields):
    """Prints the line. Nothing that takes time may follow."""
    times = {"started": process_start(), "ended": time.clock_gettime(time.CLOCK_BOOTTIME)}
    print("RESULT " + json.dumps({**fields, **times}), flush=True)
