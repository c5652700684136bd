#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles against what others use, side by side in one run; `make bench` calls it.

Contenders run interleaved in rounds, each once a round in an order of its own; a ratio is the
median of same-round ratios, so a busy machine blurs it but does not bend it. Trees: two made from a
seed (20,000 files of 1 GB, 1,500 files of 70 MB; kept in ~/.cache/cachewarm/corpus), and what a
real torch.compile of the test workload left. Disks: loop-mounted ext4 with a journal, and xfs.

It leaves report.md, report.json and report.svg in build/bench. It exits with 1 when a contender
failed, not when a bar is missed: report.json has {"bars": [{"name", "ratio", "rounds", "bar",
"holds"}]} for a script that wants to.

  make bench                                  everything: 5 rounds, 15 to 20 minutes on 2 cores
  make bench ARGS=--small                     the small tree, 3 rounds: about a minute
  make bench ARGS='--only pack/ --rounds 9'   the packers alone
"""
import argparse
import contextlib
import datetime
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bars
import contenders
import corpora
import disks
import instructions
import plot
import report
from course import Course, Programs
from processes import CommandFailed, quiet
from rounds import Runs, run_rounds
from servers import Containerd, Registry

ROOT = Path(__file__).parents[2].resolve()
OUT = ROOT / "build/bench"
DISK_BYTES = 12 << 30
BEGIN = time.monotonic()
DISKS = ["ext4", "xfs"]
INSTRUCTIONS = ["small/instructions/pack", "small/instructions/unpack"]


def say(text):
    """One line of progress."""
    seconds = int(time.monotonic() - BEGIN)
    print(f"[{seconds // 60:3d}m{seconds % 60:02d}s] {text}", flush=True)


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(prog="tests/bench/bench.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, metavar="N",
                        help="rounds of every corpus (default: 5; 3 with --small)")
    parser.add_argument("--small", action="store_true",
                        help="the small corpus on ext4 alone, without instruction counts")
    parser.add_argument("--only", type=re.compile, metavar="REGEX", default=re.compile(""),
                        help="run what has a name CORPUS/DISK/GROUP/CONTENDER that this is found "
                             "in, as in '^big/ext4/unpack'; see --list")
    parser.add_argument("--torch-cache", type=Path, metavar="DIRECTORY",
                        help="a cache directory of a real engine, laid out as "
                             "/var/cache/cachewarm is (default: the test workload's)")
    parser.add_argument("--list", action="store_true", help="name contenders and bars, and stop")
    arguments = parser.parse_args()
    if arguments.rounds is None:
        arguments.rounds = 3 if arguments.small else 5
    if not 1 <= arguments.rounds <= 1000:
        parser.error("--rounds: 1 to 1000")
    if arguments.torch_cache and not arguments.torch_cache.is_dir():
        parser.error(f"--torch-cache: {arguments.torch_cache} is no directory")
    return arguments


def list_names():
    """What --only may be matched with, and the bars."""
    for contender in contenders.ALL:
        print(f"{contender.title:24} {contender.what}")
    for name in INSTRUCTIONS:
        print(f"{name:24} counted by callgrind, once")
    print()
    for bar in bars.BARS:
        print(f"{bar.name:24} {'>=' if bar.at_least else '<='} {bar.bar:<6} {bar.what}")


def find_programs():
    """Builds nothing: tools/stage bench did."""
    built = ROOT / "build/release"
    programs = Programs(cachewarm=built / "cli/cachewarm",
                        limit=built / "tests/bench/limit/bench_limit",
                        download=built / "tests/bench/download/bench_download",
                        fetch=built / "tests/bench/fetch/bench_fetch",
                        openat2=built / "tests/bench/libbench_openat2.so",
                        peers=corpora.CACHE / "bench-peers/current")
    for path in (programs.cachewarm, programs.limit, programs.download, programs.fetch,
                 programs.openat2, programs.peers / "oras"):
        if not path.exists():
            raise SystemExit(f"bench: {path} is missing: run `make bench`, which makes it")
    if os.geteuid() != 0:
        raise SystemExit("bench: needs root for loop devices and containerd")
    return programs


def choose_corpora(arguments, work, programs):
    """(corpora, remarks); the first is the one that the bars are judged by."""
    names = ["small"] if arguments.small else ["big", "small"]
    chosen, remarks = [corpora.generated(name, say) for name in names], []
    source = arguments.torch_cache or (None if arguments.small else corpora.torch_cache(say))
    if source:
        chosen.append(corpora.real(source, work, programs.cachewarm))
        remarks.append(f"`torch` is what may travel of {source}.")
    elif not arguments.small:
        remarks.append("No cache of a real torch: tools/setup/torch-venv was not run, and "
                       "--torch-cache names none.")
    return chosen, remarks


def warm(corpus):
    """Into the page cache: no contender is measured on the disk below."""
    for folder in (corpus.tree, corpus.archives):
        quiet("bash", "-c", 'find "$0" -type f -exec cat {} + >/dev/null', folder, timeout=600)


def entries_of(corpus, disk_names, wanted):
    """(disk, contender) of what --only asks for: everything on the first disk, unpack on all."""
    return [(disk, contender) for disk in disk_names for contender in contenders.ALL
            if (disk == disk_names[0] or contender.group == "unpack")
            and (corpus.second or contender.group != "update")
            and wanted(f"{corpus.name}/{disk}/{contender.title}")]


def measure_all(arguments, chosen, work, programs, stack):
    """Starts what is needed and runs the rounds. Returns (runs, disks' names, instructions)."""
    wanted = arguments.only.search
    names = DISKS[:1] if arguments.small else DISKS
    points = {name: stack.enter_context(disks.mounted(name, work, DISK_BYTES)) for name in names}
    short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cachewarm-bench-")))
    registry = stack.enter_context(Registry(work / "registry"))
    containerd = stack.enter_context(Containerd(points["ext4"] / "containerd", short))
    runs, counted = Runs(), {}
    for corpus in chosen:
        entries = entries_of(corpus, names, wanted)
        counting = corpus.name == "small" and not arguments.small and any(map(wanted, INSTRUCTIONS))
        if not entries and not counting:
            continue
        say(f"corpus {corpus.name}: {corpus.files} files, {corpus.megabytes:.0f} MB")
        course = Course(corpus, points["ext4"], work / corpus.name, programs)
        course.publish(registry, containerd)
        warm(corpus)
        run_rounds(runs, [(course.on(points[disk]), contender) for disk, contender in entries],
                   arguments.rounds, say)
        if counting:
            say("counting instructions")
            counted = instructions.count(course, wanted)
    return runs, names, counted


def machine():
    """Cores and their model."""
    models = [line.partition(":")[2].strip() for line in
              Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{os.cpu_count()} x {models[0] if models else 'unknown CPU'}"


def facts_now(arguments):
    """What a reader must know to believe a number, as it is when the bench begins."""
    commit = quiet("git", "-C", ROOT, "describe", "--always", "--dirty").strip()
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "commit": commit, "machine": machine(),
            "load": f"{os.getloadavg()[0]:.1f}", "rounds": arguments.rounds,
            "instruction_corpus": "small"}


def write(facts, runs, results):
    """The three files, and the bars on the terminal."""
    first = facts["corpora"][0]
    text = report.markdown(facts, runs, contenders.ALL, results)
    (OUT / "report.md").write_text(text)
    (OUT / "report.json").write_text(json.dumps(report.as_json(facts, runs, results), indent=1))
    (OUT / "report.svg").write_text(plot.svg(runs, contenders.ALL, first, "ext4"))
    print("\n".join(["", *report.bar_table(results["bars"]), ""]))
    for error in runs.errors:
        print(error, file=sys.stderr)
    say(f"report: {OUT.relative_to(ROOT)}/report.md, report.json, report.svg")


def lock():
    """One bench at a time; the descriptor holds the lock until the end."""
    OUT.mkdir(parents=True, exist_ok=True)
    held = (OUT / ".lock").open("w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit("bench: another one runs in this checkout") from None
    return held


def main():
    """Entry."""
    arguments = parse()
    if arguments.list:
        return list_names()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    programs, work = find_programs(), OUT / "work"
    facts = facts_now(arguments)
    with lock(), contextlib.ExitStack() as stack:
        disks.reclaim(work)
        work.mkdir()
        stack.callback(disks.reclaim, work)
        programs = programs.copied(work / "programs")
        try:
            chosen, remarks = choose_corpora(arguments, work, programs)
            runs, names, counted = measure_all(arguments, chosen, work, programs, stack)
        except (CommandFailed, subprocess.SubprocessError) as error:
            raise SystemExit(f"bench: {error}") from error
        facts |= {"corpora": chosen, "remarks": remarks, "disks": names,
                  "load_at_the_end": f"{os.getloadavg()[0]:.1f}"}
        write(facts, runs, {"bars": bars.judge_all(runs, chosen[0], "ext4"),
                            "instructions": counted})
        return 1 if runs.errors else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
