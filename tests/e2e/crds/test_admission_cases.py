# SPDX-License-Identifier: Apache-2.0
"""The table of tests/admission against the admission policy itself."""

import pytest

from harness import admission_cases

CASES = admission_cases.read()


@pytest.fixture(scope="module")
def table(admin, installed):
    with admission_cases.Table(admin, CASES) as tried:
        yield tried


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_policy_matches_the_admission_table(table, case):
    assert table.outcome(case) in table.wanted(case)
