#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the ways to carry a compile cache to a machine that has never compiled, by the first
call of a real engine there; `make bench-engines` calls it.

Methods: cold (no cache), warm (again on the machine that compiled), copy (cp -r), mega (torch's
portable mega-cache), redis (torch's remote caches on a real redis-server), fal and b10 (the
published packages), cachewarm run, and cachewarm import (of a mega-cache with its directory).
Models: transformer, resnet152 and decoder by torch.compile, vllm and jax; the last two only have
the methods that know more than torch. All on CPU.

A machine is a mount namespace with its own /tmp, home directory and /app; needs root. Prints the
table and writes it to build/bench/engines.md, and a list of {"model", "method", "save_seconds",
"bytes", "restore_seconds", "first_call_seconds", "first_call_cpu_seconds", "native_rebuilt",
"hits", "misses", "rounds"} to build/bench/engines.json; null where a method has no such step. Exits
with 1 if a method failed, not if a condition on cachewarm is missed: the table has those.

  make bench-engines                                     one round: about 15 minutes on 2 idle cores
  make bench-engines ARGS='--rounds 3'
  make bench-engines ARGS="--models jax --methods 'copy,cachewarm run'"
"""

import argparse
import datetime
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import results
from machines import MountPoints, RunFailed
from methods import ROOT, ModelRound, Tools, engines

OUT = ROOT / "build/bench"
BEGIN = time.monotonic()
NOTES = (
    "cold: the first start; warm: the second one on the same machine.",
    "The processor time is that of all processes of a start: imports, compilers, and the program "
    "that carries the cache. The first call contains no load of the cache: that is restore s.",
    "copy, mega, fal and b10 save what `cold` compiled. Redis stores during the compilation, so it "
    "has no save s. fal and b10-transfer are the published packages, installed without their "
    "dependencies; fal's module is loaded alone, because importing its package takes a second.",
    "cachewarm sets the environment of its presets; its own cold start is given below. The "
    "mega-cache of cachewarm import was saved with that environment; its save s is that of torch "
    "and the import.",
)


def say(text):
    seconds = int(time.monotonic() - BEGIN)
    print(f"[{seconds // 60:3d}m{seconds % 60:02d}s] {text}", file=sys.stderr, flush=True)


def choice(known):
    """A parser of a list of names separated by commas."""

    def parse(text):
        names = [name.strip() for name in text.split(",")]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
        return names

    return parse


def parse(words=None):
    models = tuple(engines(Path(), Path()))
    parser = argparse.ArgumentParser(prog="bench-engines", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1, metavar="N",
                        help="rounds, each with every model and method (default: 1)")
    parser.add_argument("--models", type=choice(models), default=list(models), metavar="A,B",
                        help=f"some of {', '.join(models)} (default: all)")
    parser.add_argument("--methods", type=choice(results.METHODS), default=list(results.METHODS),
                        metavar="A,B", help="some methods; cold and warm always run (default: all)")
    for name in ("torch", "engines", "peers", "redis"):
        parser.add_argument(f"--{name}-dir", type=Path, required=True, metavar="DIR",
                            help=f"what tools/setup installed as {name}; the Makefile passes it")
    options = parser.parse_args(words)
    if not 1 <= options.rounds <= 100:
        parser.error("--rounds: 1 to 100")
    return options


def printer(title):
    """Returns a function that prints one sample of a round."""

    def show(method, sample):
        say(f"{title}: {method}: first call {sample.first_call_seconds:.2f} s, "
            f"{sample.first_call_cpu_seconds:.1f} CPU s, {sample.native_rebuilt} rebuilt")

    return show


def measure(options, place):
    """Returns the samples by (model, method), remarks and failures."""
    samples, remarks, failures = {}, [], []
    known = engines(options.torch_dir, options.engines_dir)
    for number in range(options.rounds):
        for model in options.models:
            engine = known[model]
            wanted = [each for each in engine.methods if each in options.methods]
            title = f"round {number + 1}/{options.rounds} {model}"
            tools = Tools(options.peers_dir, options.redis_dir)
            one = ModelRound(engine, wanted, place, tools, printer(title))
            try:
                one.run()
            except (RunFailed, OSError, subprocess.CalledProcessError) as error:
                failures.append(f"{model}, round {number + 1}: {error}")
                say(failures[-1])
                continue
            for method, sample in one.samples.items():
                samples.setdefault((model, method), []).append(sample)
            if one.cold_of_cachewarm:
                cold = one.cold_of_cachewarm
                remarks.append(f"{model}: cold with cachewarm "
                               f"{cold.result['first_call_seconds']:.2f} s, {cold.cpu:.1f} CPU s, "
                               f"round {number + 1}.")
    return samples, remarks, failures


def machine():
    cores = os.cpu_count()
    name = next((line.partition(":")[2].strip() for line in
                 Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")),
                platform.machine())
    return f"{cores} x {name}"


def main():
    options = parse()
    if os.geteuid() != 0:
        sys.exit("bench-engines: needs root, for machines in mount namespaces of their own")
    if ROOT.is_relative_to("/tmp"):
        sys.exit(f"bench-engines: {ROOT} is below /tmp, which each machine replaces: move it")
    OUT.mkdir(parents=True, exist_ok=True)
    facts = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
             "machine": machine(), "load": f"{os.getloadavg()[0]:.1f}"}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench-engines: terminated"))
    place = tempfile.mkdtemp(prefix="engines-", dir=OUT)
    try:
        with MountPoints():
            samples, remarks, failures = measure(options, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    lines = results.judge(samples)
    facts |= {"notes": [*NOTES, *remarks], "failures": failures}
    text = results.table(samples, lines, facts)
    (OUT / "engines.json").write_text(json.dumps(results.rows(samples), indent=1) + "\n")
    (OUT / "engines.md").write_text(text)
    print(text)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
