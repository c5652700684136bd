#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares bundles with other archive tools in one run; `make bench` calls it.

Contenders run interleaved: each runs once per round, and each round has a different order. A ratio
is the median of same-round ratios, so a busy machine adds noise but no bias. Trees: two generated
from a seed (big: 20,000 files of 1 GB, small: 1,500 files of 70 MB; kept in
~/.cache/cachewarm/corpus), and torch, the cache of a real torch.compile of the test workload. For
the agent's memory also huge, different copies of big (10 GB). Disks: loop-mounted ext4 with a
journal, xfs.

A bar is for every tree and disk, and its ratio is that of the worst place. unpack_vs_... and
activate_vs_... compare until the tree is active: by the agent's own steps, which sync the tree
later. ..._on_disk compares until all bytes are on disk: by cachewarm's commands, which end with a
sync. After the rounds, one more run under perf shows where the time of each missed bar is spent.

Writes report.md, report.json and report.svg to build/bench. Exits with 1 if a contender failed, not
if a bar is missed: scripts read {"bars": [{"name", "ratio", "rounds", "bar", "holds", "places"}],
"shortfalls": []} in report.json. A run with shortfalls (fewer than 5 rounds, files that are not
committed, a tree that lacks) decides no bar. Needs root, 35 GB of free disk (with less, huge is not
run) and, the first time, the network.

  make bench                                  everything: 5 rounds, about an hour on 2 cores
  make bench ARGS=--small                     the small tree, 2 rounds: one to two minutes
  make bench ARGS='--only pack/ --rounds 9'   the packers alone
"""
import argparse
import contextlib
import datetime
import fcntl
import json
import os
import re
import shutil
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
import profiles
import report
from course import Course, Programs
from processes import CommandFailed, quiet
from rounds import Runs, run_rounds
from servers import Containerd, Registry

ROOT = Path(__file__).parents[2].resolve()
OUT = ROOT / "build/bench"
DISK_BYTES = 12 << 30
# Copies of the source, more copies of its graph caches alone, bytes of disk that both need.
HUGE, SMALL_HUGE = (9, 2, 35e9), (2, 1, 3e9)
HUGE_DISK_BYTES = 16 << 30
BEGIN = time.monotonic()
INSTRUCTIONS = ["small/instructions/pack", "small/instructions/unpack"]


def say(text):
    """Prints one line of progress."""
    seconds = int(time.monotonic() - BEGIN)
    print(f"[{seconds // 60:3d}m{seconds % 60:02d}s] {text}", flush=True)


def parse():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="tests/bench/bench.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, metavar="N",
                        help="rounds of every corpus (default: 5; 2 with --small)")
    parser.add_argument("--small", action="store_true",
                        help="the small corpus alone, and two copies of it as huge; without "
                             "instruction counts")
    parser.add_argument("--only", type=re.compile, metavar="REGEX", default=re.compile(""),
                        help="run contenders whose name CORPUS/DISK/GROUP/CONTENDER matches, "
                             "for example '^big/ext4/unpack'; see --list")
    parser.add_argument("--torch-cache", type=Path, metavar="DIRECTORY",
                        help="a cache directory of a real engine, laid out as "
                             "/var/cache/cachewarm is (default: the test workload's)")
    parser.add_argument("--list", action="store_true", help="name contenders and bars, and stop")
    arguments = parser.parse_args()
    if arguments.rounds is None:
        arguments.rounds = 2 if arguments.small else bars.ROUNDS
    if not 1 <= arguments.rounds <= 1000:
        parser.error("--rounds: 1 to 1000")
    if arguments.torch_cache and not arguments.torch_cache.is_dir():
        parser.error(f"--torch-cache: {arguments.torch_cache} is not a directory")
    return arguments


def list_names():
    """Prints the names for --only, and the bars."""
    for contender in contenders.ALL:
        print(f"{contender.title:30} {contender.what}")
    for name in INSTRUCTIONS:
        print(f"{name:30} counted by callgrind, once")
    print()
    for bar in bars.BARS:
        print(f"{bar.name:30} {'>=' if bar.at_least else '<='} {bar.bar:<6} {bar.what}")


def find_programs():
    """Returns the programs, which tools/stage bench has built."""
    built = ROOT / "build/release"
    programs = Programs(cachewarm=built / "cli/cachewarm",
                        limit=built / "tests/bench/limit/bench_limit",
                        download=built / "tests/bench/download/bench_download",
                        fetch=built / "tests/bench/fetch/bench_fetch",
                        openat2=built / "tests/bench/libbench_openat2.so",
                        peers=corpora.CACHE / "bench-peers/current",
                        agent=built / "agent/cachewarm-agent",
                        api_server=built / "tests/bench/api_server/bench_api_server")
    for path in (programs.cachewarm, programs.limit, programs.download, programs.fetch,
                 programs.openat2, programs.agent, programs.api_server, programs.peers / "oras"):
        if not path.exists():
            raise SystemExit(f"bench: {path} is missing: run `make bench`, which builds it")
    if os.geteuid() != 0:
        raise SystemExit("bench: needs root for loop devices and containerd")
    return programs


def choose_corpora(arguments, work, programs):
    """Returns (corpora, remarks)."""
    names = ["small"] if arguments.small else ["big", "small"]
    chosen, remarks = [corpora.generated(name, say) for name in names], []
    source = arguments.torch_cache or (None if arguments.small else corpora.torch_cache(say))
    if source:
        chosen.append(corpora.real(source, work, programs.cachewarm))
        remarks.append(f"`torch` contains the files of {source} that can be captured.")
    elif not arguments.small:
        remarks.append("No cache of a real torch: run tools/setup/torch-venv, or name one "
                       "with --torch-cache.")
    return chosen, remarks


def warm(corpus):
    """Reads the corpus into the page cache, so that no contender is measured on the disk below."""
    for folder in (corpus.tree, corpus.archives):
        read_files(folder)


def read_files(folder):
    """Reads all files below the folder into the page cache."""
    quiet("bash", "-c", 'find "$0" -type f -exec cat {} + >/dev/null', folder, timeout=600)


def entries_of(corpus, disk_names, wanted):
    """Returns the (disk, contender) pairs that --only selects. Downloads, which write nothing, run
    on the first disk alone."""
    return [(disk, contender) for disk in disk_names for contender in contenders.ALL
            if (disk == disk_names[0] or contender.group != "download")
            and corpus.has(contender.group)
            and wanted(f"{corpus.name}/{disk}/{contender.title}")]


def containerd_on(point, stack):
    """Starts containerd on the disk that is mounted at `point`."""
    short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cachewarm-bench-")))
    return stack.enter_context(Containerd(point / "containerd", short))


def measure_all(arguments, chosen, work, programs):
    """Runs the rounds of all corpora but huge. Returns (runs, instructions, causes)."""
    wanted, runs, counted, courses = arguments.only.search, Runs(), {}, {}
    with contextlib.ExitStack() as stack:
        points = {name: stack.enter_context(disks.mounted(name, work, DISK_BYTES))
                  for name in bars.DISKS}
        registry = stack.enter_context(Registry(work / "registry"))
        containerds = {name: containerd_on(point, stack) for name, point in points.items()}
        for corpus in chosen:
            entries = entries_of(corpus, bars.DISKS, wanted)
            counting = (corpus.name == "small" and not arguments.small
                        and any(map(wanted, INSTRUCTIONS)))
            if not entries and not counting:
                continue
            say(f"corpus {corpus.name}: {corpus.files} files, {corpus.megabytes:.0f} MB")
            course = Course(corpus, points[bars.DISKS[0]], work / corpus.name, programs)
            course.publish(registry)
            warm(corpus)
            courses |= {(corpus.name, name): course.on(point, containerds[name])
                        for name, point in points.items()}
            run_rounds(runs, [(courses[corpus.name, disk], contender)
                              for disk, contender in entries], arguments.rounds, say)
            if counting:
                say("counting instructions")
                counted = instructions.count(course, wanted)
        causes = profiles.causes(bars.judge_all(runs, chosen, bars.DISKS), bars.BARS, courses,
                                 contenders.ALL, say)
    return runs, counted, causes


def measure_huge(arguments, source, work, programs, runs):
    """Runs the agent on the corpus huge, made of `source`, on one disk after the other. Returns
    (the corpus or None, why it was not run)."""
    wanted = arguments.only.search
    if not any(wanted(f"{bars.HUGE}/{disk}/{contender.title}")
               for disk in bars.DISKS for contender in contenders.AGENT):
        return None, ""
    copies, more_graphs, needed = SMALL_HUGE if arguments.small else HUGE
    free = shutil.disk_usage(work).free
    if free < needed:
        return None, (f"{OUT} has {free / 1e9:.0f} GB of free disk, and huge needs "
                      f"{needed / 1e9:.0f}")
    say(f"corpus {bars.HUGE}: {copies} copies of {source.name}")
    try:
        corpus = corpora.huge(source, work / "source", copies, more_graphs)
        run_huge(arguments, corpus, work, programs, runs)
    except (CommandFailed, OSError, subprocess.SubprocessError) as error:
        runs.errors.append(f"{bars.HUGE}: {error}")
        return None, "failed"
    return corpus, ""


def run_huge(arguments, corpus, work, programs, runs):
    """Runs the rounds of the corpus huge."""
    say(f"corpus {corpus.name}: {corpus.files} files, {corpus.megabytes:.0f} MB")
    with Registry(work / "registry-huge") as registry:
        course = Course(corpus, work, work / corpus.name, programs)
        course.publish(registry)
        for name in bars.DISKS:
            with disks.mounted(name, work, HUGE_DISK_BYTES) as point:
                run_rounds(runs, [(course.on(point), contender)
                                  for _, contender in entries_of(corpus, [name],
                                                                 arguments.only.search)],
                           arguments.rounds, say)


def machine():
    """Returns the number of cores and their model."""
    models = [line.partition(":")[2].strip() for line in
              Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{os.cpu_count()} x {models[0] if models else 'unknown CPU'}"


def facts_now(arguments):
    """Returns the facts that the report states about this run: date, commit, machine, load."""
    commit = quiet("git", "-C", ROOT, "describe", "--always", "--dirty").strip()
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "commit": commit, "machine": machine(),
            "load": f"{os.getloadavg()[0]:.1f}", "rounds": arguments.rounds,
            "instruction_corpus": "small"}


def write(facts, runs, results):
    """Writes the three files, and prints the bars."""
    first = facts["corpora"][0]
    text = report.markdown(facts, runs, contenders.ALL, results)
    (OUT / "report.md").write_text(text)
    (OUT / "report.json").write_text(json.dumps(report.as_json(facts, runs, results), indent=1))
    (OUT / "report.svg").write_text(plot.svg(runs, contenders.ALL, first, bars.DISKS[0]))
    print("\n".join(["", *report.shortfall_lines(facts), *report.bar_table(results["bars"]), ""]))
    for error in runs.errors:
        print(error, file=sys.stderr)
    say(f"report: {OUT.relative_to(ROOT)}/report.md, report.json, report.svg")


def lock():
    """Locks build/bench until the returned file is closed. Exits if it is locked."""
    OUT.mkdir(parents=True, exist_ok=True)
    held = (OUT / ".lock").open("w")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit("bench: another bench runs in this checkout") from None
    return held


def main():
    """Runs the bench. Returns the exit status."""
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
            runs, counted, causes = measure_all(arguments, chosen, work, programs)
            huge, no_huge = measure_huge(arguments, chosen[0], work, programs, runs)
        except (CommandFailed, subprocess.SubprocessError) as error:
            raise SystemExit(f"bench: {error}") from error
        chosen += [huge] if huge else []
        facts |= {"corpora": chosen, "remarks": remarks, "disks": list(bars.DISKS),
                  "shortfalls": bars.shortfalls(facts["commit"], arguments.rounds, chosen),
                  "load_at_the_end": f"{os.getloadavg()[0]:.1f}"}
        write(facts, runs, {"bars": bars.judge_all(runs, chosen, bars.DISKS, no_huge),
                            "causes": causes, "instructions": counted})
        return 1 if runs.errors else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
