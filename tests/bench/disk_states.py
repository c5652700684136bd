# SPDX-License-Identifier: Apache-2.0
"""The states of a disk in which `make bench-disk` measures: undisturbed, throttled, and beside a
program that keeps it filled with dirty pages. Each is a context manager around one run, which
yields an object with the facts of that run for the report.
"""
import contextlib
import os
import shutil
import statistics
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from dirty_writer import parse_dirty
from processes import CommandFailed, Server, quiet

THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")
THROTTLE_RATE = 125_000_000
# Accepted rates of a throttled dd, relative to THROTTLE_RATE.
LEAST_RATE, MOST_RATE = 0.5, 1.15
LEAST_PLAIN_RATE = 1.5
PROBE_MB = 250
DIRTY_BYTES = 4_000_000_000
VM = Path("/proc/sys/vm")
FILL_SECONDS = 180
FULL_SHARE = 0.9  # of the wanted dirty pages, when a run may begin
WRITER = Path(__file__).with_name("dirty_writer.py")
NICEST = "19"


@dataclass(frozen=True)
class DirtyPlan:
    """`amount` bytes are kept dirty; the other two are the kernel's limits meanwhile, in bytes."""
    amount: int
    background: int
    limit: int

    @property
    def unthrottled(self):
        """Up to this sum of dirty bytes the kernel delays no writer."""
        return (self.background + self.limit) // 2


def plan_dirty(available, corpus_bytes, wanted=DIRTY_BYTES):
    """Returns a plan for `wanted` bytes, or for less if `available` bytes of memory are too few.
    Its limits are those of a node with ten times the amount of available memory and the kernel's
    defaults (10 and 20 %). Raises if they would delay a contender: then the limits would be
    measured, and not the disk."""
    amount = min(wanted, available // 4)
    plan = DirtyPlan(amount, amount, 2 * amount)
    if plan.unthrottled < amount + corpus_bytes:
        raise CommandFailed(f"{amount / 1e9:.1f} GB of dirty pages are too few beside a tree of "
                            f"{corpus_bytes / 1e9:.1f} GB, with {available / 1e9:.1f} GB of "
                            f"available memory: the kernel would delay every writer at "
                            f"{plan.unthrottled / 1e9:.1f} GB of dirty pages")
    return plan


def machine_plan(background_pages, limit_pages, page, wanted=DIRTY_BYTES):
    """Returns the plan for the limits that this machine has: as much as they allow, up to
    `wanted` bytes. The kernel delays every writer, also the contenders."""
    background, limit = background_pages * page, limit_pages * page
    return DirtyPlan(min(wanted, (background + 3 * limit) // 4), background, limit)


def throttle_fault(plain, throttled):
    """Returns why the throttle cannot be used, given the rates of dd in bytes per second, or an
    empty string."""
    if plain < LEAST_PLAIN_RATE * THROTTLE_RATE:
        return (f"the disk writes only {plain / 1e6:.0f} MB/s without a throttle: a limit of "
                f"{THROTTLE_RATE / 1e6:.0f} MB/s would change nothing")
    if not LEAST_RATE <= throttled / THROTTLE_RATE <= MOST_RATE:
        return (f"the throttle does not act: dd wrote {throttled / 1e6:.0f} MB/s, not "
                f"{THROTTLE_RATE / 1e6:.0f} MB/s")
    return ""


def device_of(point):
    """Returns MAJOR:MINOR of the device that is mounted at `point`."""
    device = os.stat(point).st_dev
    return f"{os.major(device)}:{os.minor(device)}"


@contextlib.contextmanager
def throttled(point):
    """Limits all writes to the device of `point`. The rule of the root group covers the kernel's
    write-back, which belongs to no process."""
    device = device_of(point)
    if not THROTTLE.exists():
        raise CommandFailed(f"{THROTTLE} is missing: the throttle needs the blkio controller of "
                            "cgroup v1")
    THROTTLE.write_text(f"{device} {THROTTLE_RATE}")
    try:
        yield {"rate": THROTTLE_RATE}
    finally:
        THROTTLE.write_text(f"{device} 0")


def write_rate(point):
    """Returns the bytes per second of a plain dd with one fsync at its end."""
    probe = point / "probe"
    begin = time.monotonic()
    quiet("dd", "if=/dev/zero", f"of={probe}", "bs=1M", f"count={PROBE_MB}", "conv=fsync")
    seconds = time.monotonic() - begin
    probe.unlink()
    return PROBE_MB * (1 << 20) / seconds


def check_throttle(point):
    """Returns the rates of dd without and with the throttle. Raises if it does not act."""
    plain = write_rate(point)
    with throttled(point):
        limited = write_rate(point)
    fault = throttle_fault(plain, limited)
    if fault:
        raise CommandFailed(fault)
    return {"plain_bytes_per_second": round(plain), "throttled_bytes_per_second": round(limited)}


def forget_throttle(point):
    """Removes the rule that a killed bench may have left on a loop device of this number."""
    if THROTTLE.exists():
        THROTTLE.write_text(f"{device_of(point)} 0")


@contextlib.contextmanager
def dirty_limits(plan):
    """Sets the kernel's limits of dirty pages, and restores them afterwards. The kernel keeps each
    limit as a ratio or in bytes, and sets the other of the two to 0."""
    values = (("dirty_background", plan.background), ("dirty", plan.limit))
    before = [(name, (VM / f"{name}_{kind}"), (VM / f"{name}_{kind}").read_text().strip())
              for name, _ in values for kind in ("ratio", "bytes")]
    try:
        # The larger one first: a background limit must be below the other.
        for name, value in reversed(values):
            (VM / f"{name}_bytes").write_text(str(value))
        yield
    finally:
        for _, path, value in reversed(before):
            if value != "0":
                path.write_text(value)


class DirtySampler:
    """Reads the bytes of dirty pages of this machine ten times a second until its block ends."""

    def __init__(self):
        self.samples, self.stopped = [], threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)

    def sample(self):
        """Runs on the thread."""
        while not self.stopped.is_set():
            self.samples.append(parse_dirty(Path("/proc/meminfo").read_text()))
            self.stopped.wait(0.1)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def facts(self):
        """Returns the least and the median."""
        return {"dirty_least": min(self.samples, default=0),
                "dirty_median": round(statistics.median(self.samples)) if self.samples else 0}


@contextlib.contextmanager
def filled(point, log, plan, set_limits=True):
    """Keeps `plan.amount` bytes of dirty pages on the disk of `point`, in new files, as a node that
    pulls images does. The writer has the lowest priority: its pages disturb, its processor time
    should not."""
    folder = point / "filler"
    folder.mkdir()
    command = ["nice", "-n", NICEST, sys.executable, str(WRITER), str(folder), str(plan.amount)]
    facts = {"dirty_wanted": plan.amount, "dirty_limit": plan.limit}
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        if set_limits:
            stack.enter_context(dirty_limits(plan))

        def is_full():
            return parse_dirty(Path("/proc/meminfo").read_text()) >= FULL_SHARE * plan.amount
        stack.enter_context(Server(command, log, is_full, FILL_SECONDS))
        sampler = stack.enter_context(DirtySampler())
        yield facts
        facts |= sampler.facts()


@contextlib.contextmanager
def undisturbed(_point):
    """Nothing else uses the disk."""
    yield {}
