# SPDX-License-Identifier: Apache-2.0
"""Compares the closed list of release reasons in the code with the table in docs/design."""

import re

from conftest import ROOT


def test_table_of_release_reasons_matches_the_code():
    header = (ROOT / "lib/api/reasons.h").read_text()
    named = dict(re.findall(r'string_view (kReleased\w+) =\s*"(\w+)"', header))
    listed = re.search(r"kReleaseReasons\[\] = \{(.*?)\}", header, re.DOTALL)
    assert listed and set(re.findall(r"kReleased\w+", listed[1])) == set(named)
    page = (ROOT / "docs/design/0011-when-a-pod-is-held.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(named.values())
