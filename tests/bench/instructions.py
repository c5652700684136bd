# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of pack and unpack, by callgrind: equal on every machine, however busy.

Valgrind lacks some extensions of newer CPUs; libcrypto and libzstd then take the code for older
ones, so the counts compare with one another and not with a CPU's own counters.
"""
import re

from processes import CommandFailed, measure

COUNT_SECONDS = 600


def callgrind(words, preload, log):
    """Instructions of one command line."""
    measure(["env", f"LD_PRELOAD={preload}", "valgrind", "--tool=callgrind",
             "--callgrind-out-file=/dev/null", *words], log, COUNT_SECONDS)
    found = re.search(r"Collected : (\d+)", log.read_text())
    if not found:
        raise CommandFailed(f"{log}: callgrind printed no count")
    return int(found.group(1))


def count(course, wanted):
    """{"pack": {"count", "per_mb"}, ...} of the verbs that `wanted` accepts."""
    program, found = str(course.programs.cachewarm), {}
    with course.clean_target() as target:
        verbs = {"pack": ["pack", str(course.corpus.tree), f"layout://{target}/store/tree:bench"],
                 "unpack": ["unpack", course.bundle, str(target / "tree"), "--quiet"]}
        for name, words in verbs.items():
            if wanted(f"small/instructions/{name}"):
                instructions = callgrind([program, *words], course.programs.openat2, course.log)
                found[name] = {"count": instructions,
                               "per_mb": instructions / course.corpus.megabytes}
    return found
