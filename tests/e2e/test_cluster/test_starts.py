# SPDX-License-Identifier: Apache-2.0
"""The READY line is read as it is written, and what is no start is not taken for one."""

import pytest
from harness.starts import parse

LINE = (
    "READY total_s=12.3 import_s=2.08 compile_s=8.51 fx_hit={hit} fx_miss={miss} aot_hit={hit}"
    " aot_miss={miss} max_diff={diff} isa=default new_so={built} dir=/x"
)


@pytest.mark.parametrize(
    "hit, miss, built, diff, full_hit, cold, right",
    [
        (1, 0, 0, "8.3e-07", True, False, True),
        (0, 1, 3, "0", False, True, True),
        (1, 0, 3, "0", False, False, True),  # hollow: the index hit, native code rebuilt
        (1, 1, 1, "0", False, False, True),
        (1, 0, 0, "nan", True, False, False),
        (1, 0, 0, "3.37", True, False, False),
    ],
)
def test_start_is_classified_by_counters_and_directory(
    hit, miss, built, diff, full_hit, cold, right
):
    start = parse("noise\n" + LINE.format(hit=hit, miss=miss, built=built, diff=diff))
    assert (start.full_hit, start.cold, start.right) == (full_hit, cold, right)


def test_log_without_ready_line_is_no_start():
    assert parse("Traceback\nALREADY total_s=1\n") is None


def test_ready_line_with_a_missing_field_is_refused():
    with pytest.raises(ValueError, match="max_diff"):
        parse(LINE.format(hit=1, miss=0, built=0, diff="0").replace("max_diff=0", ""))
