# SPDX-License-Identifier: Apache-2.0
"""The comparison of two caches in rank_bench.py. Torch is not needed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import rank_bench  # noqa: E402


def write(folder, files):
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return rank_bench.files_of(folder)


def test_equal_paths_with_other_bytes_are_counted_by_kind(tmp_path):
    first = write(tmp_path / "first", {
        "ab/cab.py": "a", "ab/00.best_config": "1", "ab/11.best_config": "1", "locks/x": "",
        "fxgraph/ab/fab/00": "same", "ab/cab.main.so": "x"})
    second = write(tmp_path / "second", {
        "ab/cab.py": "a", "ab/00.best_config": "2", "fxgraph/ab/fab/00": "same",
        "fxgraph/ab/fab/11": "more", "locks/y": ""})
    table = rank_bench.compare(first, second)
    assert table["*.best_config"] == {"one": 1, "both": 1, "differ": 1,
                                      "paths": ["ab/00.best_config"]}
    assert table["fxgraph/"] == {"one": 1, "both": 1, "differ": 0, "paths": []}
    assert table["*.main.so"]["one"] == 1
    assert "| x | `all` | 3 | 3 | 1 |" in rank_bench.markdown({"x": table})


def test_kinds_are_those_of_the_reference():
    assert rank_bench.kind_of("cache/00ff") == "cache/"
    assert rank_bench.kind_of("ab/cab.main.cpp") == "*.main.cpp"
    assert rank_bench.kind_of("ab/cab.so.load_ok") == "other"
