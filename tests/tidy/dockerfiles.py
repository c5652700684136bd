# SPDX-License-Identifier: Apache-2.0
"""Checks the Dockerfiles without docker: syntax, stages, copied files, shell of RUN.

`check(path, text, root)` yields a message for each fault.
"""
import json
import re
import shlex
import subprocess
from pathlib import Path

KNOWN = {"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL",
         "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}
FLAGS = {"COPY": {"from", "chown", "chmod", "link"}, "ADD": {"chown", "chmod", "checksum"},
         "RUN": {"mount", "network"}, "FROM": {"platform"}}
IMAGE = re.compile(r"^[a-z0-9][a-z0-9._/-]*(:[\w][\w.-]*)?(@sha256:[0-9a-f]{64})?$")
BUILT = re.compile(r"/build/release/(?P<folder>[\w/-]+)/(?P<program>[\w-]+)$")


def instructions(text):
    """(line number, name, arguments) of each instruction; comments inside one are dropped."""
    begin, parts = 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        begin = begin if parts else number
        parts.append(line.strip().removesuffix("\\"))
        if not line.rstrip().endswith("\\"):
            name, _, arguments = " ".join(parts).strip().partition(" ")
            yield begin, name, arguments.strip()
            parts = []
    if parts:
        yield begin, "", "the last line ends with a backslash"


def check(path, text, root):
    stages = {}
    found = list(instructions(text))
    if not any(name == "FROM" for _, name, _ in found):
        yield f"{path}: no FROM"
    for number, name, arguments in found:
        for problem in problems_of(name, arguments, stages, Path(root)):
            yield f"{path}:{number}: {problem}"


def problems_of(name, arguments, stages, root):
    if name not in KNOWN:
        return [f'unknown instruction "{name}"' if name else arguments]
    if not arguments:
        return [f"{name} has no arguments"]
    if not stages and name not in ("FROM", "ARG"):
        return [f"{name} before the first FROM"]
    given, words = split(arguments)
    if given is None:
        return [f"{name}: unbalanced quotes"] if name != "RUN" else run_problems(arguments)
    unknown = {flag.partition("=")[0] for flag in given} - FLAGS.get(name, set())
    if unknown:
        return [f"{name} has no flag --{sorted(unknown)[0]}"]
    checks = {"FROM": from_problems, "COPY": copy_problems, "ADD": copy_problems}
    if name in checks:
        return checks[name](given, words, stages, root)
    if name == "RUN":
        return run_problems(arguments)
    return simple_problems(name, arguments, words)


def split(arguments):
    """The flags without their dashes, and the other words; None for unbalanced quotes."""
    try:
        words = shlex.split(arguments)
    except ValueError:
        return None, []
    count = next((i for i, word in enumerate(words) if not word.startswith("--")), len(words))
    return [word[2:] for word in words[:count]], words[count:]


def from_problems(_, words, stages, __):
    is_named = len(words) == 3 and words[1].upper() == "AS"
    if not IMAGE.match(words[0]) or not (len(words) == 1 or is_named):
        return [f"FROM {' '.join(words)}: expected IMAGE [AS NAME]"]
    stages[words[2] if is_named else str(len(stages))] = words[0]
    return []


def copy_problems(flags, words, stages, root):
    if len(words) < 2:
        return ["COPY: expected SOURCE... DESTINATION"]
    *sources, destination = words
    if len(sources) > 1 and not destination.endswith("/"):
        return [f"{destination}: a destination of several files must end with /"]
    stage = next((flag[5:] for flag in flags if flag.startswith("from=")), None)
    if stage is not None and stage not in stages:
        return [f"--from={stage}: there is no such stage"]
    if stage is None:
        return [f"{source} does not exist" for source in sources
                if not (root / source).exists() and not any(root.glob(source))]
    return [f"{source}: no CMakeLists.txt builds it" for source in sources
            if (built := BUILT.search(source)) and not is_built(built, root)]


def is_built(built, root):
    file = root / built["folder"] / "CMakeLists.txt"
    return file.is_file() and f"cachewarm_program({built['program']} " in file.read_text()


def run_problems(script):
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    return [f"RUN: {done.stderr.strip()}"] if done.returncode else []


def simple_problems(name, arguments, words):
    if name in ("ENTRYPOINT", "CMD"):
        try:
            parsed = json.loads(arguments)
        except ValueError:
            parsed = None
        if not isinstance(parsed, list) or not all(isinstance(word, str) for word in parsed):
            return [f"{name}: expected a JSON array of strings, so that signals reach the program"]
    if name == "USER" and not re.match(r"^\d+(:\d+)?$", arguments):
        return ["USER: expected UID[:GID], so that runAsNonRoot can be checked"]
    if name == "WORKDIR" and not arguments.startswith("/"):
        return ["WORKDIR: expected an absolute path"]
    if name == "ENV" and not all("=" in word for word in words):
        return ["ENV: expected NAME=VALUE"]
    return []
