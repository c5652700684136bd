# SPDX-License-Identifier: Apache-2.0
"""The table of tests/admission against the admission policy itself."""

import time

import pytest

from harness import admission_cases

CASES = admission_cases.read()


@pytest.fixture(scope="module")
def table(admin, installed):
    """Without the policy on host paths: the table has pods with other directories too."""
    kind, name = "validatingadmissionpolicybinding", "host-paths.cachewarm.io"
    binding = admin.get(kind, name)
    for field in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"):
        binding["metadata"].pop(field, None)
    admin.run("delete", kind, name)
    try:
        time.sleep(5)  # the API server reads its policies again within a second
        with admission_cases.Table(admin, CASES) as tried:
            yield tried
    finally:
        admin.apply(binding)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_policy_matches_the_admission_table(table, case):
    assert table.outcome(case) in table.wanted(case)
