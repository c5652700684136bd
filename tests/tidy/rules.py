#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that a compiler does not check: layers, sizes, names, pure rooms, words,
pages, commit subjects.

Usage: tests/tidy/rules.py [ROOT]    prints one line per broken rule; exit status 1 if any.
"""
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pages
import subjects
import words

FILE_LINES = {".cc": 500, ".h": 300, ".py": 500, ".go": 500}
TEST_LINES = 800
COLUMNS = 100
FOLDER_FILES = 20
CODE = (".cc", ".h")
PURE = ("operator/engine_log", "operator/factors", "operator/model", "operator/plan",
        "operator/render", "operator/annotations", "operator/workloads", "agent/sync", "lib/api",
        "lib/fingerprint", "lib/caches", "lib/gate/core", "lib/http/text", "lib/megacache",
        "lib/kube/core", "lib/resp", "lib/settings", "cli/report", "cli/lint")
# System headers that mean I/O, a clock or threads.
IMPURE = re.compile(r"^(fcntl|unistd|dirent|sys/|fstream|iostream|filesystem|thread|mutex|"
                    r"condition_variable|future|netdb|arpa/|poll|signal|cstdio|ctime)")
IMPURE_ROOMS = ("lib/fs", "lib/gate/client", "lib/http", "lib/kube/client", "lib/kube/runtime",
                "lib/metrics", "lib/gpu", "lib/base/log.h", "lib/base/json_log.h")
IMPURE_CALLS = re.compile(r"SystemClock\(\)|system_clock::now|steady_clock::now|"
                          r"\bgetenv\(|\brand\(")
THIRD_PARTY = re.compile(r"^(cpprest|pplx|boost|yaml-cpp|archive|spdlog|prometheus|openssl|zstd|"
                         r"cuda|nvml|nvrtc|curl)")
BANNED_FILES = re.compile(r"(?i)^(.*_)?(manager|helpers?|utils?|common|misc|impl|info|data)(_.*)?$")
BANNED_TYPES = re.compile(r"\b(?:class|struct|enum class)\s+(\w*(?:Manager|Helper|Utils?|Common|"
                          r"Misc|Impl|Info|Data))\b")
# Deciding code that has no test file of its own name, and the one that covers it.
COVERED_BY = {
    "operator/plan/acceptance/cluster_refusals.cc":
        "tests/unit/operator/plan/acceptance/acceptance_test.cc",
    "operator/plan/acceptance/dry_run.cc": "tests/unit/operator/plan/acceptance/acceptance_test.cc",
    "operator/plan/acceptance/user_refusals.cc":
        "tests/unit/operator/plan/acceptance/acceptance_test.cc",
    "operator/plan/bundles.cc": "tests/unit/operator/plan/distribution/desired_bundles_test.cc",
    "operator/plan/captures/handshake.cc": "tests/unit/operator/plan/captures/captures_test.cc",
    "operator/plan/context.cc": "tests/sim/convergence_test.cc",
    "operator/plan/decide.cc": "tests/golden/plan/plan_golden_test.cc",
    "operator/plan/distribution/node_counts.cc":
        "tests/unit/operator/plan/distribution/distribution_test.cc",
    "operator/plan/distribution/node_entries.cc":
        "tests/unit/operator/plan/distribution/distribution_test.cc",
    "operator/plan/distribution/renewals.cc":
        "tests/unit/operator/plan/distribution/distribution_test.cc",
    "operator/plan/effects.cc": "tests/golden/plan/plan_golden_test.cc",
    "operator/plan/gates/candidate_nodes.cc": "tests/unit/operator/plan/gates/auto_test.cc",
    "operator/plan/gates/gates.cc": "tests/unit/operator/plan/gates/hold_test.cc",
    "operator/plan/read_workload.cc": "tests/unit/operator/plan/acceptance/acceptance_test.cc",
    "operator/plan/targets.cc": "tests/unit/operator/plan/distribution/distribution_test.cc",
}
LOG_KEYS = Path("lib/base/log_keys.h")
TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def tracked(root):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, text=True,
                         capture_output=True, check=True).stdout
    return sorted({Path(p) for p in out.split("\n") if p and (root / p).is_file()})


def read_layers(root):
    layers = {}
    for line in (root / "tests/tidy/layers.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            room, _, allowed = line.partition(":")
            layers[room] = allowed.split()
    return layers


def below(path, room):
    return path == room or path.startswith(room + "/")


def room_of(path, layers):
    rooms = [room for room in layers if below(path, room)]
    return max(rooms, key=len) if rooms else None


def check_includes(path, lines, layers):
    name = path.as_posix()
    room = room_of(name, layers)
    pure = any(below(name, p) for p in PURE)
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        target = match.group(2)
        where = f"{name}:{number}"
        if THIRD_PARTY.match(target) and "/platform/" not in name and not below(name, "tests"):
            yield f"{where}: <{target}> may be included only below platform/<library>/"
        if target.startswith("nlohmann/") and not below(name, "lib/codec"):
            yield f"{where}: include lib/codec/json_value.h instead of <{target}>"
        if pure and match.group(1) == "<" and IMPURE.match(target):
            yield f"{where}: a pure room includes <{target}>"
        impure = any(below(target, r) for r in IMPURE_ROOMS)
        if pure and impure and not any(below(target, p) for p in PURE):
            yield f"{where}: a pure room includes {target}"
        if match.group(1) == '"' and room and room_of(target, layers):
            allowed = [room, *layers[room]]
            if not any(below(target, a) for a in allowed):
                yield f"{where}: {room} may not include {target} (tests/tidy/layers.txt)"


def check_edges(root, files, layers):
    """An edge of layers.txt that no include uses allows what nobody has decided."""
    unused = {(room, to) for room in layers for to in layers[room] if to != room}
    for path in files:
        room = room_of(path.as_posix(), layers)
        if path.suffix not in CODE or room is None:
            continue
        text = (root / path).read_text()
        for target in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.MULTILINE):
            if room_of(target, layers) != room or room in layers[room]:
                unused -= {(room, to) for to in layers[room] if below(target, to)}
    for room, to in sorted(unused):
        yield f"tests/tidy/layers.txt: {room} includes nothing of {to}"


def check_text(path, lines):
    name = path.as_posix()
    test = below(name, "tests")
    limit = TEST_LINES if test else FILE_LINES.get(path.suffix)
    if limit and len(lines) > limit:
        yield f"{name}: {len(lines)} lines, at most {limit}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS and path.suffix in (*CODE, ".py"):
            yield f"{name}:{number}: {len(line)} columns, at most {COLUMNS}"
        if TODO.search(line) and name != "tests/tidy/rules.py":
            yield f"{name}:{number}: open an issue instead of leaving a note"
        if path.suffix in CODE:
            match = BANNED_TYPES.search(line)
            if match:
                yield f"{name}:{number}: the name {match.group(1)} says nothing (ARCHITECTURE.md)"
        if any(below(name, p) for p in PURE) and IMPURE_CALLS.search(line):
            yield f"{name}:{number}: a pure room reads a clock, the environment or randomness"
        if re.search(r"using namespace", line) and path.suffix in CODE:
            yield f"{name}:{number}: using namespace"


def check_names(path):
    if BANNED_FILES.match(path.stem) and path.suffix in (*CODE, ".py", ".sh"):
        yield f"{path.as_posix()}: the name of the file says nothing"


def check_licence(path, lines):
    if path.suffix in (*CODE, ".py", ".go", ".cmake") or path.name == "CMakeLists.txt":
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
            yield f"{path.as_posix()}: no SPDX line at the top"


def check_log_keys(root, files):
    """A key outside the table does not compile; a key inside it must be used."""
    keys = re.findall(r'^    "(\w+)",', (root / LOG_KEYS).read_text(), re.MULTILINE)
    source = "".join((root / p).read_text() for p in files if p.suffix in CODE and
                     p != LOG_KEYS and p.parts[0] in ("lib", "operator", "agent", "cli"))
    for key in keys:
        if f'{{"{key}",' not in source:
            yield f"{LOG_KEYS}: no log line has the key {key}"
    if keys != list(dict.fromkeys(keys)):
        yield f"{LOG_KEYS}: a key is listed twice"


def check_folders(files):
    count = defaultdict(int)
    for path in files:
        if path.suffix in CODE:
            count[path.parent.as_posix()] += 1
    for folder, number in sorted(count.items()):
        if number > FOLDER_FILES * 2:  # a header and its source count as one subject
            yield f"{folder}: {number} source files, at most {FOLDER_FILES * 2}"


def check_tests_exist(files):
    names = {p.as_posix() for p in files}
    for path in files:
        name = path.as_posix()
        if path.suffix == ".cc" and any(below(name, r) for r in ("operator/plan", "agent/sync")):
            expected = COVERED_BY.get(name, f"tests/unit/{name[:-3]}_test.cc")
            if expected not in names:
                yield f"{name}: has no {expected}"


def check_test_share(root, files):
    def lines(paths):
        return sum(len((root / p).read_text().splitlines()) for p in paths)
    source = [p for p in files if p.suffix in CODE and not below(p.as_posix(), "tests")]
    tests = [p for p in files if p.suffix in (*CODE, ".py") and below(p.as_posix(), "tests")]
    if lines(tests) < lines(source):
        yield f"tests: {lines(tests)} lines of tests for {lines(source)} lines of source"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    files = tracked(root)
    layers = read_layers(root)
    problems = []
    for path in files:
        if path.suffix not in (*CODE, ".py", ".go", ".cmake", ".sh") and \
                path.name != "CMakeLists.txt":
            continue
        lines = (root / path).read_text().splitlines()
        if path.suffix in CODE:
            problems += check_includes(path, lines, layers)
        problems += check_text(path, lines)
        problems += check_names(path)
        problems += check_licence(path, lines)
    problems += check_edges(root, files, layers)
    problems += check_folders(files)
    problems += check_log_keys(root, files)
    problems += check_tests_exist(files)
    problems += check_test_share(root, files)
    problems += pages.check_links(root, files)
    problems += pages.check_named_tests(root, files)
    problems += pages.check_map(root)
    problems += pages.check_rooms(root)
    problems += subjects.check(root)
    problems += words.check_tree(root, files)
    print("\n".join(problems) if problems else f"rules: {len(files)} files, nothing broken")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
