# SPDX-License-Identifier: Apache-2.0
"""rules.py: which include an edge of layers.txt allows, and which edge nothing uses."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import rules  # noqa: E402


@pytest.fixture
def house(tmp_path):
    """A tree of two rooms; returns what the rules say of their edges."""

    def judge(layers: str, include: str) -> list[str]:
        (tmp_path / "tests/tidy").mkdir(parents=True)
        (tmp_path / "tests/tidy/layers.txt").write_text(layers)
        file = Path("upper/room.cc")
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(f'#include "{include}"\n')
        allowed = rules.read_layers(tmp_path)
        lines = (tmp_path / file).read_text().splitlines()
        return [
            *rules.check_includes(file, lines, allowed),
            *rules.check_edges(tmp_path, [file], allowed),
        ]

    return judge


def test_used_edge_is_in_order(house):
    assert house("lower:\nupper: lower\n", "lower/thing.h") == []


def test_include_without_an_edge_is_refused(house):
    (problem,) = house("lower:\nupper:\n", "lower/thing.h")
    assert problem.startswith("upper/room.cc:1: upper may not include lower/thing.h")


def test_edge_that_nothing_uses_is_refused(house):
    (problem,) = house("lower:\nupper: lower\n", "upper/other.h")
    assert problem == "tests/tidy/layers.txt: upper includes nothing of lower"


def test_edge_to_a_file_is_used_only_by_that_file(house):
    (problem,) = house("lower:\nupper: lower lower/thing.h\n", "lower/other.h")
    assert problem == "tests/tidy/layers.txt: upper includes nothing of lower/thing.h"


def test_room_that_includes_itself_alone_does_not_use_an_edge_to_a_part_of_it(house):
    assert house("upper:\n", "upper/other.h") == []
