#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over every product source of a compile_commands.json, remembering what was clean.

Usage: tests/tidy/clang_tidy.py BUILD_DIR [--changed | FILE...]
--changed: the folders in which a file changed since the commit CACHEWARM_BASE; by default that is
the newest commit at least 12 hours older than HEAD. `make tidy` reads every folder.
The sources of one folder are looked at as one translation unit: nearly all the time goes into the
headers of others, which are then read and matched once a folder instead of once a file (measured:
five times as fast). A folder whose sources do not compile as one, because two of them give the same
name to different things, is looked at file by file.
A folder is looked at again only when a file of it, a header of ours that it reaches, its compiler
flags or .clang-tidy changed. CACHEWARM_JOBS: how many run at once (default: one per core).
"""
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
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


def stamp(names, flags, salt):
    """The mark of these files, which exists if they were clean. The same in every checkout."""
    flags = "\0".join(flags).replace(str(ROOT), ".")
    digest = hashlib.sha256(salt + flags.encode())
    for path in sorted(frozenset().union(*map(reach, names))):
        digest.update(path.encode() + b"\0" + (ROOT / path).read_bytes())
    return CACHE / digest.hexdigest()


def tidy(source, flags):
    done = subprocess.run(["clang-tidy", "--quiet", f"--config-file={ROOT / '.clang-tidy'}", source,
                           "--", *flags, "-Wno-unknown-warning-option"], cwd=ROOT, text=True,
                          capture_output=True)
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def tidy_as_one(names, flags):
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder, "unit.cc")
        unit.write_text("".join(f'#include "{ROOT / n}"  // NOLINT\n' for n in names))
        return tidy(unit, flags)


def look(names, flags, salt):
    """(how many of the files have findings, the findings)"""
    mark = stamp(names, flags, salt)
    if mark.exists():
        return 0, ""
    if len(names) == 1:
        code, text = tidy(names[0], flags)
        found = 1 if code else 0
    else:
        code, text = tidy_as_one(names, flags)
        found = sum(f"{ROOT / n}:" in text for n in names) or 1 if code else 0
        if "[clang-diagnostic-" in text:
            print(f"{os.path.dirname(names[0])}: not one translation unit, file by file:\n"
                  + "".join(re.findall(r".*\[clang-diagnostic-.*\n", text)), end="", flush=True)
            alone = [look([n], flags, salt) for n in names]
            found, text = sum(f for f, _ in alone), "".join(t for _, t in alone)
    if not found:
        mark.touch()
    return found, text


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True,
                          check=True).stdout


def changed_folders():
    """The folders of files that differ from the commit that the change began at; None: all."""
    base = os.environ.get("CACHEWARM_BASE", "")
    if not base:
        newest = int(git("log", "-1", "--format=%ct"))
        base = git("rev-list", "-1", f"--before={newest - 12 * 3600}", "HEAD").strip()
    if not base:
        return None
    names = git("diff", "--name-only", base).split("\n")
    names += git("ls-files", "--others", "--exclude-standard").split("\n")
    return {os.path.dirname(name) for name in names}


def product_commands(build):
    """Returns (name, compile command) of every source of the product. A unity build has none."""
    commands = json.loads(Path(build, "compile_commands.json").read_text())
    named = [(os.path.relpath(each["file"], ROOT), each) for each in commands]
    found = [(name, each) for name, each in named if not name.startswith(("tests/", "build/"))]
    if not found:
        raise SystemExit(f"{build}/compile_commands.json names no source of the product: configure "
                         "the preset tidy")
    return found


def groups(build, is_chosen):
    """[(files, flags)]: a folder's sources with the same flags; folders of one file together."""
    folders = defaultdict(set)
    for name, command in product_commands(build):
        if not is_chosen(name):
            continue
        words = shlex.split(command["command"])
        folders[os.path.dirname(name), tuple(words[1:words.index("-o")])].add(name)
    small = defaultdict(set)
    for (folder, flags), names in list(folders.items()):
        if len(names) == 1 and not any(n.endswith("/main.cc") for n in names):
            small["", flags] |= folders.pop((folder, flags))
    return [(sorted(names), flags)
            for (_, flags), names in sorted((folders | small).items(), key=lambda i: -len(i[1]))]


def main():
    CACHE.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], text=True, capture_output=True).stdout
    salt = (version + re.sub(r"(?m)^#.*\n", "", (ROOT / ".clang-tidy").read_text())).encode()
    chosen = set(sys.argv[2:])
    folders = changed_folders() if chosen == {"--changed"} else None
    if chosen and chosen != {"--changed"}:
        work = groups(sys.argv[1], lambda name: name in chosen)
    else:
        work = groups(sys.argv[1], lambda n: folders is None or os.path.dirname(n) in folders)
    begin, failed = time.monotonic(), 0
    with ThreadPoolExecutor(int(os.environ.get("CACHEWARM_JOBS", os.cpu_count()))) as pool:
        for found, text in pool.map(lambda g: look(*g, salt), work):
            failed += found
            print(text, end="", flush=True)
    print(f"clang-tidy: {sum(len(names) for names, _ in work)} files in {len(work)} units, "
          f"{failed} with findings, {time.monotonic() - begin:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
