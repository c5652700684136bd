# SPDX-License-Identifier: Apache-2.0
"""Operators that serve and watch, but decide nothing: somebody else holds their Lease."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

from .kubectl import Kubectl, KubectlError
from .product import LEASE
from .waiting import wait_for

_HOLDER = "a-test"


@contextmanager
def taken(system: Kubectl) -> Iterator[None]:
    """`system`: kubectl for the operators' namespace."""

    def renew() -> None:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": _HOLDER, "renewTime": now, "leaseDurationSeconds": 15}
        system.patch("lease", LEASE, {"spec": spec})

    def keep() -> None:
        while not done.wait(3):
            try:
                renew()
            except KubectlError:
                continue

    def is_held_by_test() -> bool:
        lease = system.get("lease", LEASE)
        return bool(lease) and lease["spec"].get("holderIdentity") == _HOLDER

    done = threading.Event()
    renew()
    keeper = threading.Thread(target=keep)
    keeper.start()
    try:
        wait_for("the Lease is the test's", is_held_by_test, 30, system)
        yield
    finally:
        done.set()
        keeper.join()
        system.patch("lease", LEASE, {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}})
