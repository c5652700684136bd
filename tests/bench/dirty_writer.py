#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dirty_writer.py FOLDER BYTES: keeps BYTES of dirty pages of this machine, by writing new files
into FOLDER; runs until it is killed.

Pauses while enough pages are dirty. Removes the oldest files, so that FOLDER has at most one and a
half times BYTES: the kernel writes the oldest pages first, so those files are on the disk already.
"""
import collections
import itertools
import os
import sys
import time
from pathlib import Path

FILE_BYTES = 64 << 20
CHUNK_BYTES = 1 << 20
PAUSE_SECONDS = 0.005


def parse_dirty(meminfo):
    """Returns the bytes of dirty pages in the text of /proc/meminfo. Pure."""
    for line in meminfo.splitlines():
        name, _, value = line.partition(":")
        if name == "Dirty":
            return int(value.split()[0]) * 1024
    raise ValueError("/proc/meminfo has no line Dirty")


def files_kept(amount):
    """Returns how many files FOLDER may have. Pure."""
    return max(2, amount * 3 // 2 // FILE_BYTES)


def wait_for_room(amount):
    """Returns when fewer than `amount` bytes are dirty."""
    while parse_dirty(Path("/proc/meminfo").read_text()) >= amount:
        time.sleep(PAUSE_SECONDS)


def write_file(path, amount, chunk):
    """Writes one file, and pauses while enough pages are dirty."""
    with open(path, "wb", buffering=0) as out:
        for _ in range(FILE_BYTES // len(chunk)):
            wait_for_room(amount)
            out.write(chunk)


def main():
    """Entry."""
    folder, amount = Path(sys.argv[1]), int(sys.argv[2])
    chunk = os.urandom(CHUNK_BYTES)
    files = collections.deque()
    for number in itertools.count():
        if len(files) >= files_kept(amount):
            files.popleft().unlink()
        files.append(folder / f"{number:08d}")
        write_file(files[-1], amount, chunk)


if __name__ == "__main__":
    main()
