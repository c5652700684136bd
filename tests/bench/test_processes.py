# SPDX-License-Identifier: Apache-2.0
"""Child processes are measured and end at their time limit."""
import sys
import time

import pytest
from processes import CommandFailed, Server, measure, shell


def test_sample_measures_only_the_command(tmp_path):
    code = "x = bytearray(50 << 20); sum(range(10**6))"
    sample = measure([sys.executable, "-c", code], tmp_path / "log", 60)
    assert 50 < sample.rss_mb < 90
    assert 0 < sample.cpu <= sample.wall * 2
    assert measure(["true"], tmp_path / "log", 60).rss_mb < 10


def test_failed_part_of_a_pipeline_fails_it_with_its_output(tmp_path):
    with pytest.raises(CommandFailed, match="(?s)exit status 7.*no such thing"):
        shell("(echo no such thing >&2; exit 7) | cat", tmp_path / "log", 60)


def test_command_is_killed_at_its_limit_with_its_children(tmp_path):
    begin = time.monotonic()
    with pytest.raises(CommandFailed, match="killed at its limit of 0.2 s"):
        shell("sleep 100 | sleep 100", tmp_path / "log", 0.2)
    assert time.monotonic() - begin < 50


def test_server_ends_with_its_block(tmp_path):
    (tmp_path / "ready").touch()
    with Server(["sleep", "100"], tmp_path / "log", (tmp_path / "ready").exists) as server:
        assert server.process.poll() is None
        assert server.cpu() >= 0
    assert server.process.poll() is not None


def test_dead_server_is_reported_with_its_log(tmp_path):
    server = Server(["bash", "-c", "echo cannot bind; exit 3"], tmp_path / "log", lambda: False)
    with pytest.raises(CommandFailed, match="(?s)does not serve.*cannot bind"):
        server.__enter__()
