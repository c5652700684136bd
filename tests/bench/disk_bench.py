#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures fetches on a slow disk and in little memory; `make bench-disk` calls it.

States: the time from the registry until the tree is active, and until it is durable, by the agent's
own steps and by ctr, on a loop-mounted ext4 that is undisturbed; that takes at most 125 MB/s
(throttled); and on which another program keeps 4 GB of dirty pages (filled). For `filled` the
kernel's limits of dirty pages are raised to those of a node with 40 GB of available memory; with
--at-limit also those of this machine are measured, at which the kernel delays every writer.

Memory: the agent's fetch in a memory cgroup of several limits, undisturbed and throttled.

All runs are interleaved: each runs once per round, and each round has a different order. Writes
disk.md and disk.json to build/bench. Needs root, cgroup v1 with blkio, and 15 GB of disk. Exits
with 1 if a run failed, not if a bar is missed: scripts read {"bars": [{"name", "ratio", "rounds",
"bar", "holds"}]} in disk.json.

  make bench-disk                             the big corpus, 3 rounds
  make bench-disk ARGS='--small --rounds 1'   the small corpus, to try it
  make bench-disk ARGS='--only memory'        the memory limits alone
"""
import argparse
import contextlib
import dataclasses
import functools
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

import bench
import contenders
import corpora
import disk_report
import disk_states
import disks
import memory_cgroups
import pressure
from contenders import Contender
from course import Course, Programs
from processes import CommandFailed, Sample, measure
from rounds import Runs, run_rounds
from servers import Containerd, Registry

DISK_BYTES = 12 << 30
NEEDED_BYTES = 15_000_000_000
DURABLE_SECONDS = 1800
NEEDED_PROGRAMS = ("cachewarm", "fetch")
VALUES = bench.ROOT / "charts/cachewarm/values.yaml"


def parse():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="tests/bench/disk_bench.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, metavar="N", default=3,
                        help="rounds (default: %(default)s)")
    parser.add_argument("--small", action="store_true", help="the small corpus (72 MB)")
    parser.add_argument("--tree", type=Path, metavar="DIRECTORY",
                        help="a cache directory of an engine instead of a generated corpus")
    parser.add_argument("--dirty-gb", type=float, metavar="GB", default=4.0,
                        help="dirty pages of `filled` in 10^9 bytes (default: %(default)s)")
    parser.add_argument("--at-limit", action="store_true",
                        help="also measure `filled` with the dirty limits of this machine")
    parser.add_argument("--only", type=re.compile, metavar="REGEX", default=re.compile(""),
                        help="measure what matches GROUP/NAME, for example '^filled/'; see --list")
    parser.add_argument("--list", action="store_true", help="name all runs, and stop")
    arguments = parser.parse_args()
    if not 1 <= arguments.rounds <= 1000:
        parser.error("--rounds: 1 to 1000")
    if not 0.1 <= arguments.dirty_gb <= 4:
        parser.error("--dirty-gb: 0.1 to 4")
    if arguments.tree and not arguments.tree.is_dir():
        parser.error(f"--tree: {arguments.tree} is not a directory")
    return arguments


def agent_command(course, *options):
    """Returns the command of the agent's fetch steps with these options."""
    return course.fetch_command("bundle", options=options)


def result_of(log):
    """Returns the JSON that bench_fetch prints last; warnings may precede it."""
    return json.loads(log.read_text().strip().rpartition("\n")[2])


def by_agent(course):
    """Fetch, activation and durable mark by the agent's steps."""
    with pressure.watched() as watch:
        begin = time.monotonic()
        sample = measure(watch.inside(agent_command(course, "--durable")), course.log,
                         DURABLE_SECONDS)
    result = result_of(course.log)
    course.check_tree(Path(result["tree"]))
    active = sample.wall - (result["durableSeconds"] - result["activeSeconds"])
    return dataclasses.replace(sample, wall=active, synced=sample.wall, size=result["movedBytes"],
                               notes=watch.waits(begin + active))


def in_memory(limit, course):
    """The agent's fetch in a memory cgroup. A run that the kernel killed for want of memory is a
    result, and not a failure."""
    with memory_cgroups.memory_cgroup(limit) as group:
        begin = time.monotonic()
        try:
            sample = measure(group.inside(agent_command(course)), course.log, DURABLE_SECONDS)
            course.check_tree(Path(result_of(course.log)["tree"]))
        except CommandFailed:
            if not group.counted().oom_kills:
                raise
            sample = Sample(time.monotonic() - begin, 0.0, 0.0)
        counted = group.counted()
    return dataclasses.replace(sample, notes={"peak_mib": counted.peak / memory_cgroups.MIB,
                                              "reclaims": counted.reclaims,
                                              "oom_kills": counted.oom_kills})


def in_state(state, run):
    """Returns `run` on a disk in that state. The registry's files are in the page cache before."""
    def disturbed(course):
        bench.read_files(course.registry.log.parent)
        with state(course) as facts:
            sample = run(course)
        return dataclasses.replace(sample, notes={**sample.notes, **facts})
    return disturbed


def states_of(corpus_bytes, arguments):
    """Returns {name: function from a Course to a context manager}."""
    def fill(plan, set_limits):
        return lambda course: disk_states.filled(course.disk, course.work / "filler.log", plan(),
                                                 set_limits)

    wanted = round(arguments.dirty_gb * 1e9)

    def large_node():
        return disk_states.plan_dirty(available_bytes(), corpus_bytes, wanted)

    states = {"undisturbed": lambda course: disk_states.undisturbed(course.disk),
              "throttled": lambda course: disk_states.throttled(course.disk),
              "filled": fill(large_node, True)}
    if arguments.at_limit:
        states["at_limit"] = fill(lambda: machine_plan(wanted), False)
    return states


def available_bytes():
    """Returns the memory that the kernel could use for page cache."""
    with open("/proc/meminfo", encoding="utf-8") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines
                    if line.startswith("MemAvailable:"))


def machine_plan(wanted):
    """Returns the plan for the dirty limits of this machine, as they are now."""
    counters = Path("/proc/vmstat").read_text()
    return disk_states.machine_plan(
        memory_cgroups.number_after(counters, "nr_dirty_background_threshold"),
        memory_cgroups.number_after(counters, "nr_dirty_threshold"), os.sysconf("SC_PAGE_SIZE"),
        wanted)


def contenders_of(states):
    """Returns the Contenders of the states, and those of the memory limits."""
    by_ctr = contenders.pulling("zstd", "tree.tar.zst")
    of_states = [Contender(name, who, "", in_state(state, run)) for name, state in states.items()
                 for who, run in (("cachewarm", by_agent), ("ctr", by_ctr))]
    of_memory = [Contender(f"memory_{name}", disk_report.memory_title("", limit)[1:], "",
                           in_state(states[name], functools.partial(in_memory, limit)))
                 for name in ("undisturbed", "throttled") for limit in memory_cgroups.LIMITS_MIB]
    return of_states, of_memory


def find_programs():
    """Returns the programs, which tools/stage bench-disk has built."""
    built = bench.ROOT / "build/release"
    programs = Programs(cachewarm=built / "cli/cachewarm",
                        fetch=built / "tests/bench/fetch/bench_fetch",
                        limit=None, download=None, openat2=None, peers=None, agent=None,
                        api_server=None)
    for path in (programs.cachewarm, programs.fetch):
        if not path.exists():
            raise SystemExit(f"bench: {path} is missing: run `make bench-disk`, which builds it")
    if os.geteuid() != 0:
        raise SystemExit("bench: needs root for loop devices, cgroups and containerd")
    free = shutil.disk_usage(bench.OUT).free
    if free < NEEDED_BYTES:
        raise SystemExit(f"bench: {bench.OUT} has {free / 1e9:.0f} GB of free space, and needs "
                         f"{NEEDED_BYTES / 1e9:.0f}")
    return programs


def choose_corpus(arguments, work, programs):
    """Returns the corpus of this run."""
    if arguments.tree:
        return corpora.real(arguments.tree, work, programs.cachewarm)
    return corpora.generated("small" if arguments.small else "big", bench.say)


def measure_all(arguments, corpus, programs, work, stack):
    """Starts the servers and runs the rounds. Returns (runs, Contenders of states, throttle)."""
    of_states, of_memory = contenders_of(states_of(corpus.bytes, arguments))
    chosen = [c for c in [*of_states, *of_memory] if arguments.only.search(c.title)]
    point = stack.enter_context(disks.mounted("ext4", work, DISK_BYTES))
    disk_states.forget_throttle(point)
    throttle = None
    if any("throttled" in contender.group for contender in chosen):
        throttle = disk_states.check_throttle(point)
        bench.say(f"dd: {throttle['plain_bytes_per_second'] / 1e6:.0f} MB/s, throttled "
                  f"{throttle['throttled_bytes_per_second'] / 1e6:.0f} MB/s")
    short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cachewarm-bench-")))
    registry = stack.enter_context(Registry(work / "registry"))
    containerd = stack.enter_context(Containerd(point / "containerd", short))
    bench.say(f"corpus {corpus.name}: {corpus.files} files, {corpus.megabytes:.0f} MB")
    course = Course(corpus, point, work / corpus.name, programs)
    course.connect(registry)
    course = course.on(point, containerd)
    course.publish_image("zstd")
    runs = Runs()
    run_rounds(runs, [(course, contender) for contender in chosen], arguments.rounds, bench.say)
    return runs, of_states, throttle


def write(facts, runs, of_states):
    """Writes the two files, and prints the report."""
    name = facts["corpus"]["name"]
    judged = [state for state in (*disk_report.BARRED, "at_limit")
              if any(runs.of(name, "ext4", f"{state}/{who}") for who in ("cachewarm", "ctr"))]
    memory = {group: rows for group in ("memory_undisturbed", "memory_throttled")
              if (rows := disk_report.memory_rows(runs, name, "ext4", group))}
    results = {"bars": [disk_report.judge(runs, name, "ext4", state) for state in judged],
               "memory": memory}
    text = disk_report.markdown(facts, results, disk_report.state_table(runs, name, "ext4",
                                                                        of_states), runs.errors)
    (bench.OUT / "disk.md").write_text(text)
    (bench.OUT / "disk.json").write_text(json.dumps(disk_report.as_json(facts, results, runs),
                                                    indent=1))
    print(text)
    bench.say(f"report: {bench.OUT.relative_to(bench.ROOT)}/disk.md, disk.json")


def run(arguments):
    """Measures and writes. Returns the exit status."""
    work = bench.OUT / "work"
    with bench.lock(), contextlib.ExitStack() as stack:
        programs, facts = find_programs(), bench.facts_now(arguments)
        disks.reclaim(work)
        work.mkdir()
        stack.callback(disks.reclaim, work)
        programs = programs.copied(work / "programs", NEEDED_PROGRAMS)
        try:
            corpus = choose_corpus(arguments, work, programs)
            runs, of_states, throttle = measure_all(arguments, corpus, programs, work, stack)
        except (CommandFailed, subprocess.SubprocessError) as error:
            raise SystemExit(f"bench: {error}") from error
        facts |= {"corpus": {"name": corpus.name, "files": corpus.files, "bytes": corpus.bytes},
                  "throttle": throttle, "load_at_the_end": f"{os.getloadavg()[0]:.1f}",
                  "memory_cgroup": memory_cgroups.version(),
                  "chart": memory_cgroups.chart_memory(VALUES.read_text())}
        write(facts, runs, of_states)
        return 1 if runs.errors else 0


def main():
    """Runs the bench. Returns the exit status."""
    arguments = parse()
    if arguments.list:
        for group in contenders_of(states_of(0, arguments)):
            for contender in group:
                print(contender.title)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return run(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
