# SPDX-License-Identifier: Apache-2.0
"""Checks what the pages of documentation point at: files, tests, and the rooms of the map."""
import re
from fnmatch import fnmatchcase

PROOFS = "docs/reliability.md"  # names the test that proves each row
MAP = "ARCHITECTURE.md"
QUESTIONS = 20
PROGRAMS = ("agent", "cli", "lib", "operator")


def check_links(root, files):
    for path in files:
        if path.suffix != ".md":
            continue
        text = (root / path).read_text()
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in target and not (root / path.parent / target).exists():
                yield f"{path.as_posix()}: link to {target}, which is not there"


def tests_of(root, files):
    """The names of all tests: Suite.Test of GoogleTest, test_function of pytest."""
    sources = [(root / p).read_text() for p in files
               if p.parts[0] == "tests" and p.suffix in (".cc", ".py")]
    of_a_suite = re.compile(r"\b(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)")
    tests = {name for text in sources for name in re.findall(r"^ *def (test_\w+)", text, re.M)}
    return tests | {f"{suite}.{name}" for text in sources
                    for suite, name in of_a_suite.findall(text)}


def check_named_tests(root, files):
    """A row names its tests as Suite.Test, Suite.*, .Test of the suite before it, or
    test_function."""
    tests = tests_of(root, files)
    page = PROOFS if (root / PROOFS).exists() else "docs/reliability.md"
    suite = ""
    for name in re.findall(r"`([A-Z]\w*(?:/\*)?\.[\w*]+|\.[A-Z]\w*|test_\w+)`",
                           (root / page).read_text()):
        whole = (suite + name if name.startswith(".") else name).replace("/*", "")
        suite = whole.split(".")[0]
        if not any(fnmatchcase(test, whole) for test in tests):
            yield f"{page}: no test is called {whole}"


def check_map(root):
    """Every answer of "Where to look" is a path that exists, and there are enough questions."""
    text = (root / MAP).read_text()
    section = text.partition("## Where to look")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines()
            if line.startswith("|") and not re.match(r"\|\s*(question|-+)", line)]
    if len(rows) < QUESTIONS:
        yield f"{MAP}: {len(rows)} questions in \"Where to look\", at least {QUESTIONS}"
    for row in rows:
        question, answer = [cell.strip() for cell in row.strip("|").split("|", 1)]
        paths = [p for p in re.findall(r"`([^`]+)`", answer) if not p.endswith("()")]
        if not paths:
            yield f'{MAP}: "{question}" has no path as its answer'
        for path in paths:
            if not (list(root.glob(path)) if "*" in path else (root / path).exists()):
                yield f'{MAP}: "{question}" points at {path}, which is not there'


def check_rooms(root):
    """Every folder of a program or of lib has a row that says what belongs there, and what not."""
    text = (root / MAP).read_text()
    section = text.partition("## The rooms")[2].partition("\n## ")[0]
    rows = {match[1]: match[0] for match in re.finditer(r"^\| `([^`]+)` \|.*$", section, re.M)}
    rooms = {path.relative_to(root).as_posix() for program in PROGRAMS
             for path in (root / program).glob("*/") if path.is_dir()}
    for room in sorted(rooms):
        if room not in rows:
            yield f"{MAP}: no row for the room {room}"
        elif not all(cell.strip() for cell in rows[room].strip("|").split("|")[1:3]):
            yield f"{MAP}: the row of {room} leaves out what belongs there or what does not"
    for room in sorted(rows):
        if room.partition("/")[0] in PROGRAMS and room not in rooms:
            yield f"{MAP}: {room} has a row but no folder"
