# SPDX-License-Identifier: Apache-2.0
"""Checks cachewarm on a machine with an NVIDIA GPU and prints the tables for docs/bench/gpu.md.

Compares the probe with nvidia-smi, then starts each workload twice through `cachewarm run`: cold,
and in a fresh directory that only the store fills. Exit codes: 0 all agree and all second starts
are warm, 1 not so, 2 this machine cannot run the check (the reason is printed).
"""

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import smi
from table import Result, Start, probe_table, workload_table

WORKLOADS = Path(__file__).resolve().parent / "workloads"
CANNOT = 2


def probe(agent: Path) -> dict:
    answer = subprocess.run([agent, "--print-node-facts"], capture_output=True, text=True,
                            timeout=120, check=False)
    if answer.returncode != 0:
        raise RuntimeError(f"cachewarm-agent --print-node-facts: {answer.stderr.strip()}")
    return json.loads(answer.stdout)


def start(cachewarm: Path, store: Path, directory: Path, command: list[str]) -> dict:
    """Starts the command through `cachewarm run`; returns the JSON object in its last line."""
    words = [cachewarm, "run", "--store", store, "--name", "gpu-check", "--dir", directory,
             "--ready-after-quiet", "0", "--", *command]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=1800, check=False)
    if answer.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {answer.returncode}: "
                           f"{answer.stderr.strip()[-2000:]}")
    return json.loads(answer.stdout.strip().splitlines()[-1])


def measure(cachewarm: Path, name: str, command: list[str]) -> Result:
    """One cold start, and one whose directory only the store fills."""
    with tempfile.TemporaryDirectory(prefix="cachewarm-gpu-") as folder:
        # Both starts use one path: some engines hash the path of their cache.
        directory, store = Path(folder, "cache"), Path(folder, "store")
        cold = start(cachewarm, store, directory, command)
        directory.rename(Path(folder, "cold"))
        warm = start(cachewarm, store, directory, command)
    starts = [Start(each["hits"], each["misses"], each["seconds"]) for each in (cold, warm)]
    return Result(name, cold["counter"], *starts)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", type=Path, default=Path("build/release/agent/cachewarm-agent"))
    parser.add_argument("--cachewarm", type=Path, default=Path("build/release/cli/cachewarm"))
    parser.add_argument("--python", default=sys.executable, help="Python with torch and Triton")
    options = parser.parse_args(arguments)
    try:
        gpus, profiles = smi.query()
    except smi.NoGpuError as reason:
        print(f"gpu-check: not run: {reason}", file=sys.stderr)
        return CANNOT
    rows = smi.compare(gpus, profiles, probe(options.agent))
    print(f"{datetime.date.today()}, {gpus[0].name}, driver {gpus[0].driver}\n")
    print(probe_table(rows) + "\n")
    results = [measure(options.cachewarm, script.stem, [options.python, str(script)])
               for script in sorted(WORKLOADS.glob("*.py"))]
    print(workload_table(results))
    good = all(row.agrees for row in rows) and all(result.is_warm for result in results)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
