#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws comments and messages by a seed, for a reader who judges whether they are plain.

Usage: tests/tidy/draw_prose.py [SEED [COMMENTS [MESSAGES]]]     default: 1 60 30

Prints a table for docs/prose-check.md. The judge knows Kubernetes and C++, has not seen this
project, did not write the sentences, and reads each once: clear, second reading, or riddle.
"""
import random
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2].resolve()
WORDS = 4  # shorter texts ("bytes", "in seconds") say nothing about a style
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')


def sources() -> list[str]:
    out = subprocess.run(["git", "ls-files", "*.cc", "*.h"], cwd=ROOT, text=True,
                         capture_output=True, check=True).stdout.split()
    return sorted(path for path in out if not path.startswith("tests/"))


def comments(path: str, lines: list[str]):
    """Yields (place, text) for every block of comment lines, and for comments behind code."""
    block: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        bare = line.strip()
        if bare.startswith("//") and "SPDX" not in bare:
            block.append(bare.lstrip("/ "))
            continue
        if block:
            yield f"{path}:{number - len(block)}", " ".join(block)
            block = []
        if "  // " in line:
            yield f"{path}:{number}", line.split("  // ", 1)[1]


def messages(path: str, lines: list[str]):
    """Yields (place, text) for string literals that read as sentences; adjacent ones are joined."""
    text, begin = "", 0
    for number, line in enumerate([*lines, ""], 1):
        found = LITERAL.findall(line) if not line.strip().startswith(("#include", "//")) else []
        begin = begin or number
        text += "".join(found)
        if not found or line.rstrip().endswith((";", ",", "{", ")")):
            yield f"{path}:{begin}", text
            text, begin = "", 0


def is_prose(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= WORDS and " " in text


def draw(seed: int, kind, count: int) -> list[tuple[str, str]]:
    pool = [(place, text) for path in sources()
            for place, text in kind(path, (ROOT / path).read_text().splitlines())
            if is_prose(text)]
    return random.Random(seed).sample(pool, min(count, len(pool)))


def main() -> int:
    numbers = [int(word) for word in sys.argv[1:]]
    seed, of_comments, of_messages = numbers + [1, 60, 30][len(numbers):]
    print("| # | place | text | judgement |\n|--:|---|---|---|")
    drawn = draw(seed, comments, of_comments) + draw(seed, messages, of_messages)
    for number, (place, text) in enumerate(drawn, 1):
        print(f"| {number} | `{place}` | {text.replace('|', chr(92) + '|')} | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
