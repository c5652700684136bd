# SPDX-License-Identifier: Apache-2.0
"""The metrics reader itself. No cluster."""

import pytest
from harness.metrics import Sample, by_label, parse

TEXT = """# HELP starts_total Pods.
# TYPE starts_total counter
starts_total{namespace="a",result="hit"} 5
starts_total{namespace="a",result="cold"} 0
starts_total{namespace="b",result="hit"} 2e+00

up 1
"""


def test_samples_are_read_with_their_labels():
    samples = parse(TEXT)
    assert samples[0] == Sample("starts_total", {"namespace": "a", "result": "hit"}, 5.0)
    assert samples[-1] == Sample("up", {}, 1.0)


@pytest.mark.parametrize(
    "where, expected",
    [
        ({}, {"hit": 7.0}),
        ({"namespace": "a"}, {"hit": 5.0}),
        ({"namespace": "c"}, {}),
    ],
)
def test_sums_are_grouped_by_label_without_zeros(where: dict, expected: dict):
    assert by_label(parse(TEXT), "starts_total", "result", **where) == expected


def test_invalid_sample_is_refused():
    with pytest.raises(ValueError, match="not a sample"):
        parse("<html>")
