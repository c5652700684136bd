#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over every product source of a compile_commands.json, remembering what was clean.

Usage: tests/tidy/clang_tidy.py BUILD_DIR [FILE...]
A file is looked at again only when it, a header of ours that it reaches, or .clang-tidy changed.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2].resolve()
CACHE = Path(os.environ.get("CACHEWARM_CACHE", Path.home() / ".cache/cachewarm")) / "tidy"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


@lru_cache(maxsize=None)
def reach(name):
    """The file and every header of ours that it reaches, as a frozenset of paths."""
    seen, todo = set(), [name]
    while todo:
        current = todo.pop()
        if current in seen or not (ROOT / current).is_file():
            continue
        seen.add(current)
        todo += INCLUDE.findall((ROOT / current).read_text())
    return frozenset(seen)


def stamp(name, salt):
    digest = hashlib.sha256(salt)
    for path in sorted(reach(name)):
        digest.update(path.encode() + b"\0" + (ROOT / path).read_bytes())
    return CACHE / digest.hexdigest()


def look(name, build, salt):
    mark = stamp(name, salt)
    if mark.exists():
        return name, 0, ""
    done = subprocess.run(["clang-tidy", "--quiet", "-p", build,
                           "--extra-arg=-Wno-unknown-warning-option", name], cwd=ROOT, text=True,
                          capture_output=True)
    if done.returncode == 0:
        mark.touch()
    return name, done.returncode, done.stdout + (done.stderr if done.returncode else "")


def main():
    build = sys.argv[1]
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], text=True, capture_output=True).stdout
    salt = version.encode() + (ROOT / ".clang-tidy").read_bytes()
    commands = json.loads(Path(build, "compile_commands.json").read_text())
    names = sorted({os.path.relpath(c["file"], ROOT) for c in commands})
    names = [n for n in names if not n.startswith("tests/")]
    if len(sys.argv) > 2:
        names = [n for n in names if n in sys.argv[2:]]
    begin, failed = time.monotonic(), 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, code, text in pool.map(lambda n: look(n, build, salt), names):
            if code:
                failed += 1
                print(text, end="", flush=True)
    print(f"clang-tidy: {len(names)} files, {failed} with findings, "
          f"{time.monotonic() - begin:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
