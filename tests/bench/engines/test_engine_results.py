# SPDX-License-Identifier: Apache-2.0
"""Medians, the judge and the table of `make bench-engines`."""

import pytest
import results
from results import Sample

FACTS = {"date": "2026-11-25 23:00 UTC", "machine": "2 x CPU", "load": "0.1", "notes": ["a note"],
         "failures": ["vllm, round 1: exit status 1"]}


def start(first=1.0, cpu=5.0, rebuilt=0, **more):
    fields = {"hits": 1, "misses": 0, **more}
    return Sample(first, cpu, rebuilt, **fields)


@pytest.fixture
def samples():
    """Two rounds, the second on a machine that is twice as slow."""
    return {
        ("tf", "cold"): [start(16, 23, 15), start(32, 46, 15)],
        ("tf", "warm"): [start(1), start(2)],
        ("tf", "copy"): [start(5, 9, save_seconds=0.01, bytes=1000),
                         start(10, 18, save_seconds=0.03, bytes=1000)],
        ("tf", "redis"): [start(14, 19, 15, bytes=700), start(28, 38, 15, bytes=700)],
        ("tf", "cachewarm run"): [start(0.9, 5, save_seconds=0.02, bytes=300),
                                  start(1.8, 10, save_seconds=0.04, bytes=320)],
    }


def judged(samples):
    return {line.what: line for line in results.judge(samples)}


def test_row_has_every_field_and_the_median_of_its_rounds(samples):
    rows = {row["method"]: row for row in results.rows(samples)}
    assert list(rows) == ["cold", "warm", "copy", "redis", "cachewarm run"]
    assert rows["cachewarm run"] == {
        "model": "tf", "method": "cachewarm run", "save_seconds": pytest.approx(0.03), "bytes": 310,
        "restore_seconds": None, "first_call_seconds": pytest.approx(1.35),
        "first_call_cpu_seconds": 7.5, "native_rebuilt": 0, "hits": 1, "misses": 0, "rounds": 2}


def test_one_round_with_rebuilt_objects_shows_in_the_row(samples):
    samples["tf", "cachewarm run"][1] = start(rebuilt=3, misses=1)
    row = results.rows(samples)[-1]
    assert row["native_rebuilt"] == 3 and row["misses"] == 1
    assert not judged(samples)["native objects rebuilt"].holds


def test_every_condition_holds_in_a_good_run(samples):
    lines = results.judge(samples)
    assert len(lines) == 5 and all(line.holds for line in lines), lines


def test_import_of_a_mega_cache_has_to_hold_the_same_conditions(samples):
    samples["tf", "cachewarm import"] = [start(0.9, 5, 15, save_seconds=0.3, bytes=300)]
    lines = [line for line in results.judge(samples) if line.method == "cachewarm import"]
    assert len(lines) == 5
    assert [line.what for line in lines if not line.holds] == [
        "native objects rebuilt", "seconds to save"]


def test_first_calls_are_compared_within_a_round(samples):
    assert judged(samples)["first call / warm in place"].measured == pytest.approx(0.9)
    samples["tf", "cachewarm run"] = [start(1.06), start(2.12)]
    assert not judged(samples)["first call / warm in place"].holds


@pytest.mark.parametrize("what,change", [
    ("processor seconds, the lowest", {"cpu": 14}),
    ("seconds to save", {"save_seconds": 0.11}),
    ("bytes, the least", {"bytes": 701}),
])
def test_missed_condition_is_named(samples, what, change):
    samples["tf", "cachewarm run"] = [start(0.9, **{"save_seconds": 0.1, "bytes": 1, **change})]
    missed = [line.what for line in results.judge(samples) if not line.holds]
    assert missed == [what]


def test_cold_and_warm_are_no_competitors(samples):
    samples["tf", "warm"] = [start(1, 0.1, bytes=1), start(2, 0.1, bytes=1)]
    assert all(line.holds for line in results.judge(samples))


def test_condition_without_anything_to_compare_with_is_left_out(samples):
    alone = {("tf", "cachewarm run"): samples["tf", "cachewarm run"]}
    assert sorted(judged(alone)) == ["native objects rebuilt", "seconds to save"]
    assert results.judge({key: samples[key] for key in [("tf", "cold"), ("tf", "warm")]}) == []


def test_table_has_samples_judge_notes_and_failures(samples):
    samples["tf", "cachewarm run"][0] = start(rebuilt=2)
    text = results.table(samples, results.judge(samples), FACTS)
    assert "2026-11-25 23:00 UTC, 2 x CPU, load average 0.1 at the start." in text
    assert "| tf | copy | 0.02 | 1000 | - | 7.50 | 13.5 | 0 | 1 / 0 | 2 |" in text
    assert "| tf | cachewarm run | native objects rebuilt | 2.00 | 0.00 | **misses** |" in text
    assert "- a note" in text and "- failed: vllm, round 1: exit status 1" in text
    columns = {line.count("|") for line in text.splitlines() if line.startswith("| tf | copy")}
    assert columns == {next(line.count("|") for line in text.splitlines() if "save s" in line)}
