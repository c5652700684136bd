# SPDX-License-Identifier: Apache-2.0
"""Causes of missed bars: shares add up by program, library and function, and only missed
bars have one.
"""
from types import SimpleNamespace

import bars
import profiles
import pytest
from processes import CommandFailed

REPORT = """# Overhead;Command;Shared Object;Symbol
 30.00% ;cachewarm ;libcrypto.so.3 ;[.] sha256_block ;- -
 10.00% ;cachewarm ;libcrypto.so.3 ;[.] 0x0000000000004202 ;- -
 20.00% ;swapper   ;[kernel.kallsyms] ;[k] pv_native_safe_halt ;- -
 10.00% ;kworker/u4:1 ;[kernel.kallsyms] ;[k] copy_page ;- -
 10.00% ;cachewarm ;[kernel.kallsyms] ;[k] copy_page ;- -
  0.10% ;bash ;bash ;[.] main ;- -

# (Tip: a line of perf)
"""
BARS = [bars.speed("pack_vs_zip", 11, "pack/cachewarm", "pack/zip", ""),
        bars.speed("pack_vs_tar_zstd", 1, "pack/cachewarm", "pack/tar_zstd", ""),
        bars.memory("agent_rss_mb_1g", 1)]


def judged(*holds):
    return [{"holds": each, "corpus": "big", "disk": "xfs"} for each in holds]


def causes(*holds):
    return profiles.causes(judged(*holds), BARS, {("big", "xfs"): "course"},
                           [SimpleNamespace(title="pack/cachewarm")], lambda _: None)


def test_shares_add_up_by_program_library_and_function():
    assert profiles.summary(profiles.rows_of(REPORT)) == {
        "programs": {"cachewarm": 0.5, "idle": 0.2, "kworker/u4:1": 0.1},
        "libraries": {"libcrypto.so.3": 0.4, "kernel": 0.2},
        "functions": {"libcrypto.so.3: sha256_block": 0.3, "kernel: copy_page": 0.2}}


def test_missed_bars_of_the_same_run_have_one_cause(monkeypatch):
    asked = []
    monkeypatch.setattr(profiles, "profiled", lambda *words: asked.append(words) or {"seconds": 1})
    assert causes(False, False, None) == [
        {"bars": ["pack_vs_zip", "pack_vs_tar_zstd"], "corpus": "big", "disk": "xfs",
         "contender": "pack/cachewarm", "seconds": 1}]
    assert [words[0] for words in asked] == ["course"]


@pytest.mark.parametrize("holds", [(True, True, True), (None, None, None), (True, True, False)])
def test_bars_that_hold_did_not_run_or_are_for_memory_have_no_cause(holds):
    assert causes(*holds) == []


def test_run_that_perf_cannot_record_is_reported(monkeypatch):
    def fails(*_):
        raise CommandFailed("perf record: permission denied")
    monkeypatch.setattr(profiles, "profiled", fails)
    assert causes(False, True, True)[0]["error"] == "perf record: permission denied"


def test_perf_that_ends_at_once_is_a_failure(tmp_path, monkeypatch):
    (tmp_path / "perf").write_text("#!/bin/sh\necho no such event >&2\nexit 1\n")
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(CommandFailed, match="no such event"):
        with profiles.recording(tmp_path / "perf.data"):
            pass
