# SPDX-License-Identifier: Apache-2.0
"""The report contains all measurements and failures, and all its formats are well-formed."""
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import bars
import contenders
import plot
import pytest
import report
from corpora import Corpus
from processes import Sample
from rounds import Runs

CORPUS = Corpus("big", Path("/tree"), Path("/archives"), 20000, 3600, 1_000_000_000,
                Path("/second"))
FACTS = {"date": "2026-11-21 16:00 UTC", "commit": "abc", "machine": "2 x CPU", "rounds": 2,
         "load": "0.1", "load_at_the_end": "2.1",
         "corpora": [CORPUS], "shortfalls": [], "remarks": ["No cache of a real torch."],
         "disks": ["ext4", "xfs"], "instruction_corpus": "small"}
CAUSES = [{"bars": ["pack_vs_zip"], "corpus": "big", "disk": "ext4",
           "contender": "pack/cachewarm", "seconds": 2.0,
           "programs": {"cachewarm": 0.8, "idle": 0.15}, "libraries": {"libzstd": 0.35},
           "functions": {"libzstd: compress": 0.2}},
          {"bars": ["unpack_vs_unzip"], "corpus": "big", "disk": "xfs",
           "contender": "unpack/agent", "error": "perf record:\n denied"}]


@pytest.fixture
def runs():
    made = Runs()
    for number, contender in enumerate(contenders.ALL, 1):
        made.samples[("big", "ext4", contender.title)] = [
            Sample(number, number * 2, 20, synced=number + 1, size=3_000_000),
            Sample(number + 2, number * 2, 30, synced=number + 4, size=3_000_000)]
    made.samples[("big", "ext4", "unpack/unzip")] = [None, None]
    made.errors.append("big/ext4/unpack/unzip: exit status 9")
    return made


def results(runs):
    return {"bars": bars.judge_all(runs, [CORPUS], FACTS["disks"]), "causes": CAUSES,
            "instructions": {"pack": {"count": 5_000_000_000, "per_mb": 70_000_000}}}


def test_markdown_has_a_row_for_every_bar_and_contender(runs):
    text = report.markdown(FACTS, runs, contenders.ALL, results(runs))
    for bar in bars.BARS:
        assert f"| `{bar.name}` |" in text
    for contender in contenders.ALL:
        assert f"| `{contender.name}`: " in text
    assert "2026-11-21 16:00 UTC, commit abc, 2 x CPU" in text
    assert "| pack | 5000 | 70.0 |" in text


def test_row_shows_median_best_and_ratio_to_cachewarm(runs):
    text = report.markdown(FACTS, runs, contenders.PACK, results(runs))
    assert "| `zip`: zip -q -r | 3.00 [2.00] | 4.50 | 4.00 | 30.0 | 3.00 | 1.67 |" in text


def test_failed_contender_is_named_with_its_error(runs):
    text = report.markdown(FACTS, runs, contenders.ALL, results(runs))
    assert "| `unzip`: unzip -q (CRC32 only) | failed |" in text
    assert "    big/ext4/unpack/unzip: exit status 9" in text


def test_all_rows_of_a_table_have_equally_many_cells(runs):
    text = report.markdown(FACTS, runs, contenders.ALL, results(runs)).replace("\\|", "")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for above, below in zip(rows, rows[1:]):
        if below.startswith("|---"):
            assert above.count("|") == below.count("|")
        if above.startswith("|---"):
            assert above.count("|") == below.count("|")


def test_row_of_a_bar_shows_every_disk_and_the_worst_decides(runs):
    runs.samples[("big", "xfs", "pack/cachewarm")] = [Sample(1, 1, 1)]
    runs.samples[("big", "xfs", "pack/zip")] = [Sample(13, 1, 1)]
    table = report.bar_table(results(runs)["bars"])
    assert table[0] == "| bar | required | | big: ext4, xfs | compares |"
    assert "| `pack_vs_zip` | >= 11 | **misses** | 1.67, 13.0 | zip -r / cachewarm |" in table


def test_missed_bars_have_a_measured_cause_or_the_reason_why_not(runs):
    text = report.markdown(FACTS, runs, contenders.ALL, results(runs))
    assert ("- `pack_vs_zip`: big/ext4/pack/cachewarm, 2.00 s. By program: cachewarm 80%, idle 15%."
            "\n  By library: libzstd 35%. By function: libzstd: compress 20%.") in text
    assert "- `unpack_vs_unzip`: big/xfs/unpack/agent: not measured: perf record: denied" in text


def test_run_that_decides_no_bar_says_so_before_the_bars(runs):
    facts = {**FACTS, "shortfalls": ["2 of 5 rounds", "not measured: the corpora torch"]}
    text = report.markdown(facts, runs, contenders.ALL, results(runs))
    assert ("**This run decides no bar**: 2 of 5 rounds; not measured: the corpora torch.\n\n"
            "| bar |") in text
    assert "decides no bar" not in report.markdown(FACTS, runs, contenders.ALL, results(runs))


def test_groups_that_did_not_run_have_no_table(runs):
    assert "### big, xfs" not in report.markdown(FACTS, runs, contenders.ALL, results(runs))


def test_json_has_names_ratios_rounds_and_bars(runs):
    found = json.loads(json.dumps(report.as_json(FACTS, runs, results(runs))))
    bar = next(bar for bar in found["bars"] if bar["name"] == "pack_vs_zip")
    assert (bar["rounds"], bar["bar"]) == (2, 11)
    assert bar["ratio"] == pytest.approx((2 / 1 + 4 / 3) / 2)
    assert found["corpora"][0]["bytes"] == 1_000_000_000
    assert {"corpus": "big", "disk": "ext4", "contender": "unpack/unzip",
            "rounds": [None, None]} in found["samples"]


def test_plot_is_well_formed_and_shows_the_contenders_that_ran(runs):
    root = ElementTree.fromstring(plot.svg(runs, contenders.ALL, CORPUS, "ext4"))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert {"pack", "unpack", "activate", "zip", "limit"} <= set(texts)
    assert "unzip" not in texts


@pytest.mark.parametrize("value,expected", [(None, "-"), (0.0512, "0.05"), (1.239, "1.24"),
                                            (24.61, "24.6"), (241.3, "241")])
def test_numbers_have_three_digits(value, expected):
    assert report.number(value) == expected
