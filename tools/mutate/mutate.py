#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one fault at a time and says which of them no test notices.

Usage: tools/mutate/mutate.py [--room ROOM]... [--file FILE]... [--count 20] [--seed 1] [--jobs 2]

Without rooms and files: the sources that differ from origin/main. The programs are those of
`make unit`, built in build/dev; neither they nor the working tree are changed. The file
tools/mutate/equivalent.txt lists faults that change nothing.
"""
import argparse
import difflib
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import building  # noqa: E402
import faults  # noqa: E402
import rooms  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).parent / "equivalent.txt"


def changed():
    done = subprocess.run(["git", "diff", "--name-only", "origin/main", "--", "*.cc"], cwd=ROOT,
                          text=True, capture_output=True, check=False)
    return [name for name in done.stdout.split()
            if not name.startswith("tests/") and (ROOT / name).exists()]


def difference(text, fault):
    old, new = text.splitlines(), fault.apply(text).splitlines()
    return [line for line in difflib.unified_diff(old, new, lineterm="", n=0)
            if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def equivalents(path=EQUIVALENT):
    """Lines "FILE: -old | +new  # reason"; the key is what stands before the reason."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {line.split("  # ")[0].strip() for line in lines if line and not line.startswith("#")}


def key_of(file, diff):
    return f"{file}: " + " | ".join(line[0] + line[1:].strip() for line in diff)


class Judge:
    """Says whether a test notices a fault. A program is first run without one, for its time."""
    ENVIRONMENT = {"CACHEWARM_SOURCE_DIR": str(ROOT)}  # tests read golden files below it

    def __init__(self, build):
        self.build = build
        self.times = {}

    def measure(self, program):
        took = self.build.test(self.build.path_of(program), dict(self.ENVIRONMENT), 600)
        if took is None:
            raise SystemExit(f"{program} fails without any fault")
        self.times[program] = took

    def limit(self, program):
        if program not in self.times:
            self.measure(program)
        return 20 + 5 * self.times[program]

    def notices(self, file, object_file, programs):
        """The program that fails, None when all pass, "" when nothing could be linked."""
        linked = 0
        for program in programs:
            environment = dict(self.ENVIRONMENT)
            if program in rooms.STARTS:
                if self.build.link(rooms.STARTS[program], object_file) is None:
                    continue
                environment["CACHEWARM_PROGRAMS"] = str(self.build.scratch)
                path = self.build.path_of(program)  # only the started program has the fault
            elif Path(file).name == "main.cc":
                continue  # the object would replace the main() of the test
            else:
                path = self.build.link(program, object_file)
            if path is None:
                continue
            linked += 1
            if self.build.test(path, environment, self.limit(program)) is None:
                return program
        return None if linked else ""


def plant(judge, files, count, seed):
    """Yields (file, text, fault, program that noticed or None) for `count` faults that compile."""
    known = equivalents()
    pool = []
    for file in files:
        text = (ROOT / file).read_text()
        pool += [(file, text, fault) for fault in faults.find(text)]
    random.Random(seed).shuffle(pool)
    for file, text, fault in pool:
        if count == 0:
            return
        if key_of(file, difference(text, fault)) in known:
            continue
        object_file = judge.build.compile(file, fault.apply(text))
        if object_file is None:
            continue
        noticed = judge.notices(file, object_file, rooms.programs(ROOT, file))
        if noticed != "":
            count -= 1
            yield file, text, fault, noticed


def report(file, text, fault, noticed):
    if noticed is not None:
        print(f"killed by {noticed}: {file}:{fault.line(text)}: {fault.kind}", flush=True)
        return
    print(f"SURVIVED {file}:{fault.line(text)}: {fault.kind}")
    for line in difference(text, fault):
        print(f"    {line}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--room", action="append", default=[])
    parser.add_argument("--file", action="append", default=[])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    groups = {room: rooms.sources(ROOT, room) for room in options.room}
    if options.file or not groups:
        groups["files"] = options.file or changed()
    os.nice(10)
    totals = Counter()
    with tempfile.TemporaryDirectory(prefix="mutate-") as scratch:
        build = building.Build(ROOT, ROOT / "build/dev", scratch)
        build.configure("--preset=dev")
        wanted = {name for files in groups.values() for file in files
                  for name in rooms.programs(ROOT, file)}
        build.make(sorted(wanted | {rooms.STARTS[name] for name in wanted & set(rooms.STARTS)}),
                   options.jobs)
        judge = Judge(build)
        for group, files in groups.items():
            for file, text, fault, noticed in plant(judge, files, options.count, options.seed):
                report(file, text, fault, noticed)
                totals[group, noticed is not None] += 1
    print(f"\nseed {options.seed}\n{'room':24}{'killed':>8}{'planted':>9}{'share':>8}")
    for group in groups:
        killed, total = totals[group, True], totals[group, True] + totals[group, False]
        print(f"{group:24}{killed:8}{total:9}{100 * killed // max(total, 1):7}%")


if __name__ == "__main__":
    main()
