# SPDX-License-Identifier: Apache-2.0
"""Tests that the demo refuses a disk on which its agents would fetch nothing."""
import os
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "tools/demo/check-disk"
GIB = 1 << 30


def check(folder, free, size=100):
    """Runs the program with a df that reports `free` of `size` GiB."""
    df = folder / "df"
    df.write_text(f"#!/bin/sh\necho Avail 1B-blocks\necho {free * GIB} {size * GIB}\n")
    df.chmod(0o755)
    return subprocess.run([PROGRAM, folder / "not/there/yet"], capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})


@pytest.mark.parametrize("free", [13, 90])
def test_more_free_space_than_the_agents_reserve_is_accepted(tmp_path, free):
    done = check(tmp_path, free)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("free", [0, 12])
def test_less_free_space_is_refused_with_the_remedy(tmp_path, free):
    done = check(tmp_path, free)
    assert done.returncode == 1
    assert f"has {free} of 100 GiB free" in done.stderr
    assert "leave 12 % free" in done.stderr and "set CACHEWARM_CLUSTER" in done.stderr
    assert f"Free {13 - free + 1} GiB" in done.stderr
