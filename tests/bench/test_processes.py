# SPDX-License-Identifier: Apache-2.0
"""Child processes: what they cost is told, and none outlives its time."""
import sys
import time

import pytest
from processes import CommandFailed, Server, measure, shell


def test_cpu_and_memory_of_a_command_are_its_own(tmp_path):
    code = "x = bytearray(50 << 20); sum(range(10**6))"
    sample = measure([sys.executable, "-c", code], tmp_path / "log", 60)
    assert 50 < sample.rss_mb < 90
    assert 0 < sample.cpu <= sample.wall * 2
    assert measure(["true"], tmp_path / "log", 60).rss_mb < 10


def test_a_failing_part_of_a_pipeline_fails_it_and_its_output_is_told(tmp_path):
    with pytest.raises(CommandFailed, match="(?s)exit status 7.*no such thing"):
        shell("(echo no such thing >&2; exit 7) | cat", tmp_path / "log", 60)


def test_a_command_is_killed_at_its_limit_with_its_children(tmp_path):
    begin = time.monotonic()
    with pytest.raises(CommandFailed, match="killed at its limit of 0.2 s"):
        shell("sleep 100 | sleep 100", tmp_path / "log", 0.2)
    assert time.monotonic() - begin < 50


def test_a_server_ends_with_its_block(tmp_path):
    (tmp_path / "ready").touch()
    with Server(["sleep", "100"], tmp_path / "log", (tmp_path / "ready").exists) as server:
        assert server.process.poll() is None
        assert server.cpu() >= 0
    assert server.process.poll() is not None


def test_a_server_that_dies_is_reported_with_its_log(tmp_path):
    server = Server(["bash", "-c", "echo cannot bind; exit 3"], tmp_path / "log", lambda: False)
    with pytest.raises(CommandFailed, match="(?s)does not serve.*cannot bind"):
        server.__enter__()
