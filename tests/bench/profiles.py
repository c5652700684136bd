# SPDX-License-Identifier: Apache-2.0
"""Causes of missed bars: where the processors are during one more run, sampled by perf on all of
them. Time in which a processor has nothing to do is `idle`: the run waits for a disk, or works on
fewer threads than there are processors.
"""
import contextlib
import signal
import subprocess
import time

from processes import STOP_SECONDS, CommandFailed, kill_group, quiet

HERTZ = 997
START_SECONDS = 10
REPORT_SECONDS = 120
SHOWN = 8
IDLE, KERNEL = "swapper", "[kernel.kallsyms]"


@contextlib.contextmanager
def recording(path):
    """Records samples of all processors to `path` until the block ends. Times are those of
    time.monotonic()."""
    with open(f"{path}.log", "w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            ["perf", "record", "-a", "-e", "cpu-clock", "-F", str(HERTZ), "-k", "CLOCK_MONOTONIC",
             "-o", str(path)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not (path.exists() and path.stat().st_size) and process.poll() is None:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.05)
            if process.poll() is not None:
                log.seek(0)
                raise CommandFailed(f"perf record: {log.read().strip()}")
            yield
            process.send_signal(signal.SIGINT)
            process.wait(STOP_SECONDS)
        finally:
            kill_group(process)
            process.wait()


def rows_of(text):
    """Returns [(share, program, object, symbol)] of the output of `perf report`, shares of 1."""
    rows = []
    for line in text.splitlines():
        words = [word.strip() for word in line.split(";")]
        if len(words) >= 4 and words[0].endswith("%"):
            rows.append((float(words[0][:-1]) / 100, words[1], words[2],
                         words[3].removeprefix("[.]").removeprefix("[k]").strip()))
    return rows


def summary(rows):
    """Returns {"programs", "libraries", "functions"}: {name: share}, the largest shares of each.
    Libraries and functions are those of programs, not of idle processors."""
    found = {"programs": {}, "libraries": {}, "functions": {}}

    def add(kind, name, share):
        found[kind][name] = found[kind].get(name, 0) + share

    for share, program, library, symbol in rows:
        library = "kernel" if library == KERNEL else library
        add("programs", "idle" if program == IDLE else program, share)
        if program != IDLE:
            add("libraries", library, share)
            if not symbol.startswith("0x"):  # an address, of a library without names
                add("functions", f"{library}: {symbol}", share)
    return {kind: largest(shares) for kind, shares in found.items()}


def largest(shares):
    """Returns the largest shares, sorted."""
    found = sorted(shares.items(), key=lambda item: -item[1])[:SHOWN]
    return {name: round(share, 4) for name, share in found if share >= 0.005}


def profiled(course, contender, field):
    """Runs a contender once more. Returns where the processors were until `field` of its sample, as
    a JSON object."""
    data = course.work / "perf.data"
    data.unlink(missing_ok=True)
    with recording(data), course.clean_target():
        sample = contender.run(course)
    end = sample.begin + getattr(sample, field)
    text = quiet("perf", "report", "-i", data, "--stdio", "--no-children", "-F",
                 "overhead,comm,dso,sym", "-t", ";", "--percentage", "relative", "--time",
                 f"{sample.begin:.6f},{end:.6f}", timeout=REPORT_SECONDS)
    return {"seconds": getattr(sample, field), **summary(rows_of(text))}


def causes(judged, bars, courses, contenders, say):
    """Profiles the contender of cachewarm of every missed bar for time, where it misses most.
    `courses` are those of (corpus, disk). Returns JSON objects, one per run."""
    by_title = {contender.title: contender for contender in contenders}
    missed = {}
    for bar, result in zip(bars, judged):
        if result["holds"] is False and bar.field != "size" and bar.of != "peak":
            missed.setdefault((result["corpus"], result["disk"], bar.cachewarm, bar.field),
                              []).append(bar.name)
    found = []
    for (corpus, disk, title, field), names in missed.items():
        say(f"perf: {corpus}/{disk}/{title}")
        cause = {"bars": names, "corpus": corpus, "disk": disk, "contender": title}
        try:
            cause |= profiled(courses[corpus, disk], by_title[title], field)
        except (CommandFailed, OSError, subprocess.SubprocessError) as error:
            cause["error"] = str(error)
        found.append(cause)
    return found
