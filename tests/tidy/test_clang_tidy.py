# SPDX-License-Identifier: Apache-2.0
"""Tests which sources clang_tidy.py finds in a compile_commands.json."""
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import clang_tidy  # noqa: E402


def commands(folder, *names):
    entries = [{"file": str(clang_tidy.ROOT / name), "command": f"c++ -O0 -o x.o -c {name}"}
               for name in names]
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return folder


def test_sources_of_the_product_are_grouped_by_folder(tmp_path):
    build = commands(tmp_path, "lib/fs/dir.cc", "lib/fs/file.cc", "tests/unit/x_test.cc")
    ((files, _),) = clang_tidy.groups(build, lambda name: True)
    assert files == ["lib/fs/dir.cc", "lib/fs/file.cc"]


def test_compile_commands_of_a_unity_build_are_an_error(tmp_path):
    build = commands(tmp_path, "build/dev/lib/fs/Unity/unity_0_cxx.cxx", "tests/unit/x_test.cc")
    with pytest.raises(SystemExit, match="configure the preset tidy"):
        clang_tidy.groups(build, lambda name: True)


def test_two_checkouts_of_the_same_files_share_what_was_clean(tmp_path, monkeypatch):
    def stamp(name, text, flag="-DX"):
        checkout = tmp_path / name
        checkout.mkdir(exist_ok=True)
        (checkout / "a.cc").write_text(text)
        clang_tidy.reach.cache_clear()
        monkeypatch.setattr(clang_tidy, "ROOT", checkout)
        return clang_tidy.stamp(["a.cc"], (f"-I{checkout}", flag), b"salt").name

    first = stamp("first", "int x;")
    assert stamp("second", "int x;") == first
    assert stamp("third", "int y;") != first
    assert stamp("fourth", "int x;", "-DY") != first
