# SPDX-License-Identifier: Apache-2.0
"""Nothing in this folder runs on a cluster that has admission policies."""

import pytest

from harness.cluster import OLDER


def pytest_collection_modifyitems(items):
    if not OLDER:
        for item in items:
            if "/older/" in str(item.path):
                item.add_marker(pytest.mark.skip("needs CACHEWARM_KUBERNETES=1.34: make e2e-older"))
