# SPDX-License-Identifier: Apache-2.0
"""The report of `make bench-disk`: ratios to the undisturbed disk, verdicts, memory limits."""
import argparse
import json
from pathlib import Path

import disk_bench
import disk_report
import pytest
from processes import Sample
from rounds import Runs

FACTS = {"date": "2026-11-26 20:00 UTC", "commit": "abc", "machine": "2 x CPU", "rounds": 3,
         "load": "0.1", "load_at_the_end": "2.1", "memory_cgroup": 1, "chart": (32, 512),
         "corpus": {"name": "big", "files": 20000, "bytes": 1_040_000_000},
         "throttle": {"plain_bytes_per_second": 600_000_000,
                      "throttled_bytes_per_second": 120_000_000}}


def samples(*walls, **notes):
    return [wall and Sample(wall, 1.0, 40.0, synced=wall * 10, notes=notes) for wall in walls]


def runs_of(**found):
    runs = Runs()
    for title, each in found.items():
        runs.samples[("big", "ext4", title.replace("__", "/"))] = each
    return runs


def judged(runs, state="throttled"):
    return disk_report.judge(runs, "big", "ext4", state)


@pytest.mark.parametrize("walls,holds", [((1.3, 2.6, 9), True), ((1.4, 2.8, 1), False)])
def test_bar_compares_a_state_with_the_undisturbed_run_of_the_same_round(walls, holds):
    found = judged(runs_of(undisturbed__cachewarm=samples(1, 2, 4),
                           throttled__cachewarm=samples(*walls)))
    assert found["name"] == "active_throttled" and found["holds"] is holds
    assert found["ratio"] == pytest.approx(sorted(found["each_round"])[1])


def test_ratios_until_durable_and_those_of_ctr_stand_beside_it():
    slow = [Sample(1.0, 1.0, 1.0, synced=50.0)]
    found = judged(runs_of(undisturbed__cachewarm=samples(1), throttled__cachewarm=slow,
                           undisturbed__ctr=samples(2), throttled__ctr=samples(6)))
    assert (found["ratio"], found["durable_ratio"]) == (1, 5)
    assert (found["ctr_ratio"], found["ctr_durable_ratio"]) == (3, 3)


def test_round_with_a_failure_does_not_count():
    found = judged(runs_of(undisturbed__cachewarm=samples(1, None, 1),
                           throttled__cachewarm=samples(1.2, 9, None)))
    assert (found["ratio"], found["rounds"]) == (1.2, 1)
    assert judged(Runs())["holds"] is None


def test_state_at_the_limits_of_the_machine_has_no_bar():
    found = judged(runs_of(undisturbed__cachewarm=samples(1), at_limit__cachewarm=samples(2)),
                   "at_limit")
    assert (found["ratio"], found["bar"], found["holds"]) == (2, None, None)
    assert disk_report.bar_table([found])[2].startswith("| `active_at_limit` | 2.00 | - |  |")
    assert "| not run |" in disk_report.bar_table([judged(Runs())])[2]


def test_table_shows_all_rounds_and_the_dirty_pages():
    made = {c.title: c for c in disk_bench.contenders_of(
        disk_bench.states_of(0, argparse.Namespace(at_limit=False, dirty_gb=4.0)))[0]}
    runs = runs_of(filled__cachewarm=samples(1, 3, 2, dirty_median=4e9, dirty_least=3e9,
                                           cpu_wait=0.5, disk_wait=0.25),
                   filled__ctr=[None, None])
    lines = disk_report.state_table(runs, "big", "ext4", made.values())
    assert lines[2] == ("| filled | `cachewarm` | 2.00 [1.00, 3.00, 2.00] | 0.50 | 0.25 | "
                        "20.0 [10.0, 30.0, 20.0] | 4.00 (least 3.00) |")
    assert lines[3:] == ["| filled | `ctr` | failed | | | | |"]
    assert disk_report.waits_of(samples(1)) == "- | -"


def limited(*walls, kills=0, reclaims=0, peak=200.0):
    return [Sample(wall, 1.0, 40.0 + number, notes={"oom_kills": kills, "reclaims": reclaims,
                                                    "peak_mib": peak + number})
            for number, wall in enumerate(walls)]


@pytest.fixture
def memory():
    return runs_of(memory_undisturbed__none=limited(1, 2, 4),
                   memory_undisturbed__64MiB=limited(0.1, 0.1, 0.1, kills=1, reclaims=900, peak=62),
                   memory_undisturbed__96MiB=limited(3, 6, 12, reclaims=500, peak=94),
                   memory_undisturbed__256MiB=limited(1.1, 2, 4, reclaims=3))


def test_memory_rows_have_ratios_peaks_and_killed_runs(memory):
    rows = disk_report.memory_rows(memory, "big", "ext4", "memory_undisturbed")
    assert [row["limit_mib"] for row in rows] == [64, 96, 256, None]
    assert [row["killed"] for row in rows] == [3, 0, 0, 0]
    assert [row["ratio"] for row in rows] == [None, 3, 1, 1]
    assert [row["peak_mib"] for row in rows] == [64, 96, 202, 202]
    assert rows[0]["seconds"] is None and rows[0]["rss_mib"] is None
    assert (rows[1]["reclaims"], rows[1]["rss_mib"]) == (500, 42)


def test_advice_is_the_smallest_limit_that_lives_and_the_smallest_that_costs_no_time(memory):
    rows = disk_report.memory_rows(memory, "big", "ext4", "memory_undisturbed")
    assert disk_report.advice(rows) == {"least_limit_mib": 96, "rss_mib": 42,
                                        "least_limit_in_same_time_mib": 256}
    assert disk_report.advice(rows[:1]) == {"least_limit_mib": None, "rss_mib": None,
                                            "least_limit_in_same_time_mib": None}


def test_limit_of_which_one_round_was_killed_is_not_advised(memory):
    found = memory.samples[("big", "ext4", "memory_undisturbed/256MiB")]
    found[1] = limited(1, kills=1)[0]
    rows = disk_report.memory_rows(memory, "big", "ext4", "memory_undisturbed")
    assert rows[2]["killed"] == 1
    assert disk_report.advice(rows)["least_limit_in_same_time_mib"] is None


def test_report_has_bars_states_memory_chart_and_failures(memory, tmp_path, monkeypatch, capsys):
    memory.samples[("big", "ext4", "undisturbed/cachewarm")] = samples(1)
    memory.samples[("big", "ext4", "filled/cachewarm")] = samples(2, dirty_median=1, dirty_least=1)
    memory.samples[("big", "ext4", "filled/ctr")] = [None]
    memory.errors.append("big/ext4/filled/ctr: exit status 9")
    monkeypatch.setattr(disk_bench.bench, "ROOT", tmp_path)
    monkeypatch.setattr(disk_bench.bench, "OUT", tmp_path)
    made, _ = disk_bench.contenders_of(
        disk_bench.states_of(0, argparse.Namespace(at_limit=False, dirty_gb=4.0)))
    disk_bench.write(FACTS, memory, made)
    text = Path(tmp_path / "disk.md").read_text()
    assert "wrote 600 MB/s, and 120 MB/s with the throttle" in text
    assert "| `active_filled` | 2.00 | <= 1.3 | **misses** |" in text
    assert "| `active_throttled` | - | <= 1.3 | not run |" not in text
    assert "| 64 | - | - | - | 64.0 | 900 | 3 of 3 |" in text
    assert "| 256 | 2.00 | 1.00 | 42.0 | 202 | 3 | 0 of 3 |" in text
    assert "within 1.15 of the time without a limit: 256 MiB. Largest RSS" in text
    assert "requests 32 MiB for the agent and limits it to 512 MiB" in text
    assert "    big/ext4/filled/ctr: exit status 9" in text
    assert text in capsys.readouterr().out
    found = json.loads((tmp_path / "disk.json").read_text())
    assert [bar["holds"] for bar in found["bars"]] == [False]
    assert found["memory_advice"]["memory_undisturbed"]["least_limit_mib"] == 96


def test_titles_of_all_runs():
    made = disk_bench.contenders_of(
        disk_bench.states_of(0, argparse.Namespace(at_limit=True, dirty_gb=4.0)))
    assert [c.title for c in made[0]] == [
        f"{state}/{who}" for state in ("undisturbed", "throttled", "filled", "at_limit")
        for who in ("cachewarm", "ctr")]
    assert [c.title for c in made[1]][:3] == [
        "memory_undisturbed/64MiB", "memory_undisturbed/96MiB", "memory_undisturbed/128MiB"]
    assert made[1][-1].title == "memory_throttled/none"


def test_last_line_of_the_fetch_is_its_result(tmp_path):
    (tmp_path / "log").write_text('{"ts":"","level":"warning","msg":"full"}\n{"tree": "/a"}\n')
    assert disk_bench.result_of(tmp_path / "log") == {"tree": "/a"}
