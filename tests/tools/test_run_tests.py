# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/run_tests.py: what it counts, and what fails a run."""
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import run_tests  # noqa: E402


@pytest.fixture
def stages(monkeypatch, tmp_path):
    monkeypatch.setenv("CACHEWARM_STAGES", str(tmp_path / "stages"))
    return run_tests.Stages()


def gtest_report(folder, name, tests):
    """Writes a GoogleTest report; `tests` maps a name to its result."""
    folder.joinpath(f"{name}.json").write_text(json.dumps({
        "tests": len(tests), "failures": sum(r == "FAILED" for r in tests.values()), "errors": 0,
        "disabled": 0, "testsuites": [{"name": "Suite", "testsuite": [
            {"name": test, "result": result} for test, result in tests.items()]}]}))


def test_gtest_reports_are_added_up(stages, tmp_path):
    gtest_report(tmp_path, "a", {"One": "COMPLETED", "Two": "SKIPPED"})
    gtest_report(tmp_path, "b", {"Three": "COMPLETED", "Four": "FAILED"})
    assert run_tests.count_gtest(stages, tmp_path) == (2, 1)
    assert stages.skipped == ["Suite.Two"]


def test_a_junit_report_is_counted(stages, tmp_path):
    path = tmp_path / "report.xml"
    path.write_text('<testsuites><testsuite><testcase classname="a" name="x"/>'
                    '<testcase classname="a" name="y"><failure/></testcase>'
                    '<testcase classname="a" name="z"><skipped/></testcase>'
                    '</testsuite></testsuites>')
    assert run_tests.count_junit(stages, path) == (1, 1)
    assert stages.skipped == ["a::z"]


def test_a_run_without_a_report_has_failed(stages, tmp_path):
    assert run_tests.count_junit(stages, tmp_path / "none.xml") == (0, 1)


def end_of(stages, capsys):
    with pytest.raises(SystemExit) as end:
        stages.finish()
    return end.value.code, capsys.readouterr().out


def test_a_run_ends_with_its_stages_and_the_counts(stages, capsys):
    stages.add("unit tests", 61, passed=7)
    code, out = end_of(stages, capsys)
    assert code == 0 and out.splitlines()[-1] == "7 passed, 0 failed"
    assert "unit tests" in out and "1m01" in out


def test_a_skipped_test_that_is_not_listed_fails_the_run(stages, capsys):
    stages.add("unit tests", 1, passed=1)
    stages.skipped.append("Suite.Skipped")
    code, out = end_of(stages, capsys)
    assert code == 1 and "not listed in tests/skips.txt: Suite.Skipped" in out
    assert out.splitlines()[-1] == "1 passed, 1 failed"


def test_a_skip_without_a_reason_is_refused():
    assert run_tests.read_skips("# comment\nSuite.* because the kernel lacks it\n") == ["Suite.*"]
    with pytest.raises(ValueError, match="no reason"):
        run_tests.read_skips("Suite.Test because \n")


def test_timed_hands_on_the_status_and_writes_a_row(tmp_path):
    file = tmp_path / "deep" / "stages"
    done = subprocess.run([ROOT / "tools/timed", "a title", "sh", "-c", "exit 3"],
                          env={"CACHEWARM_STAGES": str(file), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 3
    title, seconds, status = file.read_text().strip().split("\t")
    assert (title, status) == ("a title", "3") and int(seconds) >= 0


def test_a_stage_that_failed_before_fails_the_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "stages").write_text("clang-tidy\t5\t1\n")
    monkeypatch.setenv("CACHEWARM_STAGES", str(tmp_path / "stages"))
    code, out = end_of(run_tests.Stages(), capsys)
    assert code == 1 and "clang-tidy" in out


def test_vllm_is_installed_for_exactly_the_folders_that_start_it():
    e2e = run_tests.ROOT / "tests/e2e"
    starting = {path.parent.name for path in e2e.rglob("test_*.py")
                if re.search(r'engine_server\("\w+", "vllm"', path.read_text())}
    assert starting == {"engines", "evidence"}
    folders = {path.name for path in e2e.iterdir() if any(path.glob("test_*.py"))}
    assert {folder for folder in folders if run_tests.starts_vllm(folder)} == starting
    assert run_tests.starts_vllm(None) and run_tests.starts_vllm("engines/test_vllm.py")
