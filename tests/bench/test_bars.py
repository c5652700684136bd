# SPDX-License-Identifier: Apache-2.0
"""Bars: ratios come from the same round, failures count for nothing, names are the issue's."""
from pathlib import Path

import bars
import pytest
from corpora import Corpus
from processes import Sample
from rounds import Runs, shuffled

NAMES = """pack_vs_zip pack_vs_tar_zstd unpack_vs_unzip unpack_vs_go_gzip unpack_vs_go_zstd
unpack_vs_sha_tar_zstd activate_vs_ctr_zstd activate_vs_ctr_gzip update5_bytes update5_time
agent_rss_mb_1g unpack_vs_limit pack_vs_limit""".split()
BIG = Corpus("big", Path("/tree"), Path("/archives"), 20000, 3600, 1_000_000_000)


def samples(*walls, rss=10.0, size=100):
    return [wall and Sample(wall, wall, rss, synced=wall * 2, size=size) for wall in walls]


def runs_of(**groups):
    runs = Runs()
    for title, found in groups.items():
        runs.samples[("big", "ext4", title.replace("__", "/"))] = found
    return runs


def judged(name, runs, corpus=BIG):
    return next(bar for bar in bars.judge_all(runs, corpus, "ext4") if bar["name"] == name)


def test_bars_keep_their_names():
    assert [bar.name for bar in bars.BARS] == NAMES


def test_ratio_is_the_median_of_same_round_ratios():
    runs = runs_of(pack__cachewarm=samples(1, 2, 4), pack__zip=samples(10, 40, 44))
    found = judged("pack_vs_zip", runs)
    assert found["each_round"] == [10, 20, 11]
    assert (found["ratio"], found["rounds"], found["bar"], found["holds"]) == (11, 3, 10, True)
    assert found["ratio_when_both_sync"] == 11


def test_round_with_a_failure_does_not_count():
    runs = runs_of(pack__cachewarm=samples(1, None, 1), pack__zip=samples(8, 900, None))
    found = judged("pack_vs_zip", runs)
    assert (found["ratio"], found["rounds"], found["holds"]) == (8, 1, False)


def test_limit_is_compared_by_the_best_rounds():
    runs = runs_of(unpack__cachewarm=samples(3, 2), unpack__limit=samples(1, 1.6))
    found = judged("unpack_vs_limit", runs)
    assert (found["ratio"], found["holds"], found["holds_when"]) == (2, False, "<=")
    assert found["ratio_when_both_sync"] is None


def test_memory_is_the_larger_of_fetch_and_update():
    runs = runs_of(update__whole=[*samples(2, 2, rss=40), None],
                   update__cachewarm=[None, *samples(1, rss=50), *samples(1, rss=60)])
    found = judged("agent_rss_mb_1g", runs)
    assert (found["each_round"], found["ratio"], found["rounds"]) == ([40, 50, 60], 60, 3)


def test_memory_is_the_largest_peak_with_a_note_for_a_small_tree():
    runs = runs_of(update__whole=[*samples(1, rss=30), *samples(1, rss=70)])
    assert judged("agent_rss_mb_1g", runs)["ratio"] == 70
    assert not judged("agent_rss_mb_1g", runs)["holds"]
    small = Corpus("big", Path("/tree"), Path("/archives"), 1, 1, 72_000_000)
    assert judged("agent_rss_mb_1g", runs, small)["note"] == "of 72 MB, not of 1 GB"


def test_update_is_compared_with_a_whole_fetch():
    runs = runs_of(update__whole=samples(2, 2), update__cachewarm=samples(0.5, 0.5, size=4))
    assert judged("update5_bytes", runs)["ratio"] == 0.04
    assert judged("update5_time", runs)["ratio"] == 0.25


def test_bars_that_did_not_run_do_not_hold():
    for found in bars.judge_all(Runs(), BIG, "ext4"):
        assert (found["ratio"], found["rounds"], found["holds"]) == (None, 0, None)
        assert found["note"] == bars.NOT_RUN


def test_each_round_runs_all_contenders_in_a_different_order():
    items = list(range(5))
    orders = [shuffled(items, number) for number in range(6)]
    assert all(sorted(order) == items for order in orders)
    assert orders == [shuffled(items, number) for number in range(6)]
    for item in items:
        assert len({order[order.index(item) - 1] for order in orders}) > 1
    assert shuffled([], 3) == []
