# SPDX-License-Identifier: Apache-2.0
"""Tests of the language checks: each plants a fault and sees it found."""
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import pages  # noqa: E402
import subjects  # noqa: E402
import words  # noqa: E402

TABLE = words.Table('wish(es)? -> request\nlet go -> release\n'
                    'allow docs/*.md "make a wish" because it is a quotation\n')


def found(path, *lines):
    return list(words.check(path, "\n".join(lines), TABLE))


@pytest.mark.parametrize("line", [
    "struct JobWish {",             # in a type
    "void take_wishes();",          # in a function
    '  Log("the wish is gone");',   # in a string
    "// Serves one wish.",          # in a comment
    "TEST(Plan, AWishIsGranted) {"  # in the name of a test
])
def test_a_word_of_the_table_is_found_wherever_it_is_written(line):
    assert found("a.cc", line) == ['a.cc:1: "%s": write request (tests/tidy/words.txt)'
                                   % ("wishes" if "wishes" in line else "wish")]


def test_a_phrase_is_found_across_a_line_break():
    assert found("a.cc", "// The pod is let", "// go at its deadline.") == [
        'a.cc:1: "let go": write release (tests/tidy/words.txt)']


def test_a_part_of_another_word_is_not_found():
    assert not found("a.cc", "int swish; int dishwishes; // outlet gone")


def test_an_exception_holds_for_its_files_and_its_text_only():
    assert not found("docs/a.md", "Make a wish.")
    assert found("docs/a.md", "Make a wish, and another wish.")
    assert found("README.md", "Make a wish.")


def test_a_line_of_the_table_that_cannot_be_read_is_named():
    with pytest.raises(ValueError, match="words.txt:2"):
        words.Table("wish -> request\nallow docs/a.md no reason\n")


@pytest.mark.parametrize("path, lines", [
    ("a.cc", ["// What is refused here."]),
    ("a.cc", ["int a;  // Whoever reads it."]),
    ("a.py", ["# Of those that wait, the first."]),
    ("a.py", ['"""That which is left."""']),
])
def test_a_comment_does_not_begin_with_a_free_relative_clause(path, lines):
    assert [line for line in found(path, *lines) if "the comment begins" in line]


def test_a_comment_that_names_its_subject_passes():
    assert not found("a.cc", "// Returns the bundle.", "// What a second line begins with is free.",
                     "int a;  // bytes")


@pytest.mark.parametrize("subject, expected", [
    ("agent/extract: refuse names that are not UTF-8", ""),
    ("tests: compress the corpus", ""),
    ("operator/plan: a full node takes no slot", "imperative"),
    ("lib/api: renamed the reasons", "imperative"),
    ("cli: adds a verb", "imperative"),
    ("fix things", "expected"),
    ("lib/bundle: " + "x" * 70, "characters"),
])
def test_a_commit_subject_is_an_instruction_of_at_most_72_characters(subject, expected):
    problem = subjects.problem_of(subject)
    assert expected in problem and bool(problem) == bool(expected)


def test_the_map_answers_with_paths_that_exist(tmp_path):
    (tmp_path / "there.cc").write_text("")
    rows = [f"| is it {i}? | `there.cc`, `Flip()` |" for i in range(pages.QUESTIONS)]
    page = tmp_path / pages.MAP
    page.write_text("\n".join(["## Where to look", "| question | answer |", "|---|---|", *rows]))
    assert not list(pages.check_map(tmp_path))
    page.write_text(page.read_text().replace("`there.cc`", "`gone.cc`", 1))
    assert list(pages.check_map(tmp_path)) == [
        'ARCHITECTURE.md: "is it 0?" points at gone.cc, which is not there']


def test_the_map_has_enough_questions(tmp_path):
    (tmp_path / pages.MAP).write_text("## Where to look\n| a? | `x` |\n")
    assert "at least 20" in list(pages.check_map(tmp_path))[0]


@pytest.mark.parametrize("row, expected", [
    ("| `agent/tree` | the root directory | names |", []),
    ("| `agent/tree` | the root directory | |", ["the row of agent/tree leaves out"]),
    ("| `agent/steps` | steps | files |", ["no row for the room agent/tree",
                                           "agent/steps has a row but no folder"]),
])
def test_the_map_has_a_row_for_each_room(tmp_path, row, expected):
    (tmp_path / "agent/tree").mkdir(parents=True)
    (tmp_path / pages.MAP).write_text(f"## The rooms\n{row}\n## Where to look\n")
    problems = list(pages.check_rooms(tmp_path))
    assert len(problems) == len(expected)
    assert all(want in problem for want, problem in zip(expected, problems))


def test_the_table_of_the_project_can_be_read():
    assert len(words.Table((HERE / "words.txt").read_text()).words) > 30
