# SPDX-License-Identifier: Apache-2.0
"""Bars: ratios come from the same round, the worst place counts, failures count for nothing."""
from pathlib import Path

import bars
import pytest
from corpora import Corpus
from processes import Sample
from rounds import Runs, shuffled

NAMES = """pack_vs_zip pack_vs_tar_zstd unpack_vs_unzip unpack_vs_go_gzip unpack_vs_go_zstd
unpack_vs_sha_tar_zstd activate_vs_ctr_zstd activate_vs_ctr_gzip activate_vs_oras
unpack_vs_unzip_on_disk unpack_vs_go_zstd_on_disk unpack_vs_sha_tar_zstd_on_disk
activate_vs_ctr_zstd_on_disk activate_vs_ctr_gzip_on_disk update5_bytes update5_time
agent_rss_mb_1g agent_rss_mb_10g unpack_vs_limit pack_vs_limit""".split()
TREE, ARCHIVES, SECOND = Path("/tree"), Path("/archives"), Path("/second")
BIG = Corpus("big", TREE, ARCHIVES, 20000, 3600, 1_000_000_000, SECOND)
SMALL = Corpus("small", TREE, ARCHIVES, 1500, 300, 72_000_000, SECOND)
TORCH = Corpus("torch", TREE, ARCHIVES, 200, 30, 5_000_000)
HUGE = Corpus("huge", TREE, None, 180_000, 32_000, 10_000_000_000, SECOND)


def samples(*walls, rss=10.0, size=100):
    return [wall and Sample(wall, wall, rss, synced=wall * 2, size=size) for wall in walls]


def runs_of(corpus="big", disk="ext4", runs=None, **groups):
    runs = runs or Runs()
    for title, found in groups.items():
        runs.samples[(corpus, disk, title.replace("__", "/"))] = found
    return runs


def judged(name, runs, corpora=(BIG,), disks=("ext4",), no_huge=""):
    return next(bar for bar in bars.judge_all(runs, corpora, disks, no_huge)
                if bar["name"] == name)


def test_bars_keep_their_names():
    assert [bar.name for bar in bars.BARS] == NAMES


def test_ratio_is_the_median_of_same_round_ratios():
    runs = runs_of(pack__cachewarm=samples(1, 2, 4), pack__zip=samples(10, 40, 48))
    found = judged("pack_vs_zip", runs)
    assert found["each_round"] == [10, 20, 12]
    assert (found["ratio"], found["rounds"], found["bar"], found["holds"]) == (12, 3, 11, True)
    assert found["note"] == ""


def test_round_with_a_failure_does_not_count():
    runs = runs_of(pack__cachewarm=samples(1, None, 1), pack__zip=samples(8, 900, None))
    found = judged("pack_vs_zip", runs)
    assert (found["ratio"], found["rounds"], found["holds"]) == (8, 1, False)


def test_worst_corpus_and_disk_counts():
    runs = runs_of(pack__cachewarm=samples(1, 1), pack__zip=samples(20, 20))
    runs_of(disk="xfs", runs=runs, pack__cachewarm=samples(1), pack__zip=samples(30))
    runs_of("torch", "xfs", runs, pack__cachewarm=samples(1, 1, 1), pack__zip=samples(9, 9, 9))
    found = judged("pack_vs_zip", runs, (BIG, TORCH), ("ext4", "xfs"))
    assert (found["ratio"], found["rounds"], found["holds"]) == (9, 1, False)
    assert (found["corpus"], found["disk"]) == ("torch", "xfs")
    assert [(place["corpus"], place["disk"], place["ratio"]) for place in found["places"]] == [
        ("big", "ext4", 20), ("big", "xfs", 30), ("torch", "ext4", None), ("torch", "xfs", 9)]
    assert found["note"] == "not run on torch/ext4"


def test_limit_is_compared_by_the_best_rounds():
    runs = runs_of(unpack__cachewarm=samples(3, 2), unpack__limit=samples(1, 1.6))
    found = judged("unpack_vs_limit", runs)
    assert (found["ratio"], found["holds"], found["holds_when"]) == (2, False, "<=")


def test_bars_on_disk_compare_commands_that_sync_with_synced_rivals():
    runs = runs_of(unpack__agent=samples(1), unpack__cachewarm=samples(3),
                   unpack__unzip=[Sample(6, 6, 1, synced=30)])
    assert judged("unpack_vs_unzip", runs)["ratio"] == 6
    assert judged("unpack_vs_unzip_on_disk", runs)["ratio"] == 5


def test_memory_is_the_largest_peak():
    runs = runs_of(agent__memory=[*samples(1, rss=40), None, *samples(1, rss=70)])
    found = judged("agent_rss_mb_1g", runs)
    assert (found["each_round"], found["ratio"], found["rounds"]) == ([40, 70], 70, 2)
    assert (found["holds"], found["note"]) == (False, "")


def test_memory_of_a_smaller_tree_has_a_note():
    runs = runs_of("small", agent__memory=samples(1, rss=30))
    assert judged("agent_rss_mb_1g", runs, (SMALL,))["note"] == "of 72 MB, not of 1 GB"


def test_memory_of_ten_gigabytes_is_that_of_the_corpus_huge():
    runs = runs_of(agent__memory=samples(1, rss=30))
    runs_of("huge", runs=runs, agent__memory=samples(1, rss=60))
    assert judged("agent_rss_mb_1g", runs, (BIG, HUGE))["ratio"] == 30
    assert judged("agent_rss_mb_10g", runs, (BIG, HUGE))["ratio"] == 60
    found = judged("agent_rss_mb_10g", runs, (BIG,), no_huge="20 GB of free disk")
    assert (found["ratio"], found["note"]) == (None, "not run: 20 GB of free disk")


def test_update_is_compared_with_a_whole_fetch():
    runs = runs_of(update__whole=samples(2, 2), update__cachewarm=samples(0.5, 0.5, size=4))
    assert judged("update5_bytes", runs)["ratio"] == 0.04
    assert judged("update5_time", runs)["ratio"] == 0.25
    assert judged("update5_time", runs, (BIG, TORCH))["note"] == ""


def test_bars_that_did_not_run_do_not_hold():
    for found in bars.judge_all(Runs(), (BIG, HUGE), ("ext4", "xfs")):
        assert (found["ratio"], found["rounds"], found["holds"]) == (None, 0, None)
        assert found["note"] == bars.NOT_RUN


@pytest.mark.parametrize("commit,rounds,corpora,reasons", [
    ("abc", 5, (BIG, SMALL, TORCH), []),
    ("abc-dirty", 5, (BIG, SMALL, TORCH), ["abc-dirty: files of the tree are not committed"]),
    ("abc", 2, (SMALL,), ["2 of 5 rounds", "not measured: the corpora big, torch"])])
def test_run_that_decides_no_bar_has_the_reasons(commit, rounds, corpora, reasons):
    assert bars.shortfalls(commit, rounds, corpora) == reasons


def test_each_round_runs_all_contenders_in_a_different_order():
    items = list(range(5))
    orders = [shuffled(items, number) for number in range(6)]
    assert all(sorted(order) == items for order in orders)
    assert orders == [shuffled(items, number) for number in range(6)]
    for item in items:
        assert len({order[order.index(item) - 1] for order in orders}) > 1
    assert shuffled([], 3) == []
