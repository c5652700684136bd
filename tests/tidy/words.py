#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the language of the tree: the words of words.txt, and how a comment begins.

Usage: tests/tidy/words.py FILE...    prints one line per finding; exit status 1 if any.
tests/tidy/rules.py checks the whole tree.
"""
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

TABLE = Path(__file__).with_name("words.txt")
SUFFIXES = (".cc", ".h", ".py", ".go", ".md", ".yaml", ".yml", ".json", ".txt", ".cmake", ".tpl",
            "")
# Recorded output of other programs, and inputs of fuzzers.
LEFT_OUT = ("tests/fuzz/corpus/", "tests/bench/corpus/", "tests/cluster/kubebox/")
SLASHES = (".cc", ".h", ".go")
HASHES = (".py", ".sh", ".cmake", ".txt", ".yaml", ".yml", "")
# A comment names the thing; a free relative clause as its subject makes a riddle.
FREE_RELATIVE = re.compile(
    r"(What|Who|Whom|Whose|Whoever|Whatever|Whichever|Which)\b(?!.*\?)|"
    r"(That which|Of (those|what))\b")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Table:
    """The words, and where each is allowed. Raises ValueError that names a line it cannot read."""

    def __init__(self, text: str):
        self.words: list[tuple[re.Pattern, str]] = []
        self.allowed: list[tuple[str, str]] = []
        for number, line in enumerate(text.splitlines(), 1):
            allow = re.fullmatch(r'allow (\S+) "([^"]*)" because \S.*', line)
            word = re.fullmatch(r"(.+?) -> (.+)", line)
            if not line or line.startswith("#"):
                continue
            if allow:
                self.allowed.append((allow.group(1), split(allow.group(2))))
            elif word:
                self.words.append((re.compile(rf"(?<![\w'])(?:{word.group(1)})(?![\w'])"),
                                   word.group(2)))
            else:
                raise ValueError(f"words.txt:{number}: expected 'PATTERN -> REPLACEMENT' or "
                                 f"'allow GLOB \"TEXT\" because REASON', got: {line}")

    def findings(self, path: str, line: str):
        """Yields (word, replacement) for every word of the line that is not allowed there."""
        text = split(line)
        for glob, phrase in self.allowed:
            if fnmatch(path, glob):
                if not phrase:
                    return
                text = text.replace(phrase, " ")
        for pattern, instead in self.words:
            match = pattern.search(text)
            if match:
                yield match.group(0), instead


def split(text: str) -> str:
    """Lower case, with identifiers as separate words: "kFollowHarm_x" is "k follow harm x"."""
    return " ".join(CAMEL.sub(" ", text).replace("_", " ").replace("-", " ").lower().split())


def comment_starts(path: str, lines: list[str]):
    """Yields (line number, text) for the first line of every comment."""
    suffix = Path(path).suffix
    mark = "//" if suffix in SLASHES else "#" if suffix in HASHES else None
    before = False
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        is_comment = mark is not None and bare.startswith(mark)
        if is_comment and not before:
            yield number, bare.lstrip("/#!<* ")
        elif mark == "//" and not is_comment and "  // " in line:
            yield number, line.split("  // ", 1)[1].strip()
        elif suffix == ".py" and bare.startswith('"""'):
            yield number, bare.strip('" ')
        before = is_comment and bare.lstrip(mark).strip() != ""


def check(path: str, text: str, table: Table):
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        for word, instead in table.findings(path, line):
            yield f'{path}:{number}: "{word}": write {instead} (tests/tidy/words.txt)'
        if number < len(lines):  # a phrase that a line break cuts in two
            tail, head = line.split()[-1:], lines[number].strip(" /#*").split()[:1]
            for word, instead in table.findings(path, " ".join(tail + head)):
                if " " in word:
                    yield f'{path}:{number}: "{word}": write {instead} (tests/tidy/words.txt)'
    for number, start in comment_starts(path, lines):
        match = FREE_RELATIVE.match(start)
        if match and not any(fnmatch(path, glob) and not phrase
                             for glob, phrase in table.allowed):
            yield f'{path}:{number}: the comment begins with "{match.group(0)}": name the thing'


def check_tree(root: Path, files: list[Path]):
    """Yields the findings in every file of the tree that people read."""
    table = Table(TABLE.read_text())
    for path in files:
        name = path.as_posix()
        if path.suffix in SUFFIXES and not name.startswith(LEFT_OUT):
            try:
                text = (root / path).read_text()
            except UnicodeDecodeError:
                continue
            yield from check(name, text, table)


def main() -> int:
    table = Table(TABLE.read_text())
    problems = [problem for path in sys.argv[1:]
                for problem in check(path, Path(path).read_text(), table)]
    print("\n".join(problems) if problems else "words: nothing found")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
