#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the files at equal paths with different bytes in the caches of two ranks of one model.

Usage: rank_bench.py [--python FILE] [--autotune] [--json FILE]

Runs rank.py twice, each time as two processes of torch on CPU (gloo), each with an empty cache
directory of its own. Prints how many files two directories have in common, and how many of those
differ: rank 0 beside rank 1 of one start, and rank 0 beside rank 0 of the next start. Reported in
docs/bench/ranks.md; needs torch (tools/setup/torch-venv)."""

import argparse
import collections
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
RANKS = 2
DIRECTORIES = ("fxgraph", "aotautograd", "cache", "dynamo", "triton")
ENDINGS = (".best_config", ".main.so", ".main.cpp", ".so", ".cpp", ".py", ".h", ".o")


def kind_of(path):
    """The kind of the file at `path`, relative to the cache directory."""
    top = path.split("/")[0]
    if top in DIRECTORIES:
        return f"{top}/"
    return next((f"*{ending}" for ending in ENDINGS if path.endswith(ending)), "other")


def files_of(directory):
    """The content of each file by its path; without locks and temporary files."""
    found = {}
    for path in sorted(directory.rglob("*")):
        parts = path.relative_to(directory).parts
        if path.is_file() and parts[0] != "locks" and not path.name.endswith((".lock", ".tmp")):
            found["/".join(parts)] = path.read_bytes()
    return found


def compare(first, second):
    """By kind: how many paths only one side has, both have, and both have with other bytes."""
    table = collections.defaultdict(lambda: {"one": 0, "both": 0, "differ": 0, "paths": []})
    for path in sorted(first.keys() | second.keys()):
        row = table[kind_of(path)]
        if path in first and path in second:
            row["both"] += 1
            if first[path] != second[path]:
                row["differ"] += 1
                row["paths"].append(path)
        else:
            row["one"] += 1
    return dict(table)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(python, folder, autotune):
    """Runs the ranks, which must all succeed; returns their files."""
    port, ranks = free_port(), []
    for rank in range(RANKS):
        home = folder / f"rank{rank}"
        home.mkdir(parents=True)
        environment = {name: value for name, value in os.environ.items()
                       if "CACHE" not in name and not name.startswith("TORCH")}
        environment |= {
            "RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1",
            "TORCHINDUCTOR_CACHE_DIR": str(home), "TMPDIR": str(folder),
            "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_VEC_ISA_OK": "1",
            "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}
        ranks.append(subprocess.Popen(
            [python, str(HERE / "rank.py"), *(["--autotune"] if autotune else [])],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for rank, process in enumerate(ranks):
        output, _ = process.communicate()
        if process.returncode != 0:
            sys.exit(f"rank {rank} failed:\n{output}")
    return [files_of(folder / f"rank{rank}") for rank in range(RANKS)]


def markdown(tables):
    lines = ["| compared | kind | only one has | both have | of these, differ |",
             "|---|---|--:|--:|--:|"]
    for name, table in tables.items():
        total = {column: sum(row[column] for row in table.values())
                 for column in ("one", "both", "differ")}
        for kind, row in [*sorted(table.items()), ("all", total)]:
            lines.append(f"| {name} | `{kind}` | {row['one']} | {row['both']} | {row['differ']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch")
    parser.add_argument("--autotune", action="store_true", help="let Inductor autotune")
    parser.add_argument("--json", help="also write the figures and the differing paths here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        starts = [start(options.python, Path(folder) / f"start{number}", options.autotune)
                  for number in range(2)]
    tables = {"rank 0, rank 1": compare(*starts[0]),
              "rank 0, rank 0 of the next start": compare(starts[0][0], starts[1][0])}
    print(markdown(tables))
    if options.json:
        Path(options.json).write_text(json.dumps(tables, indent=2))


if __name__ == "__main__":
    main()
