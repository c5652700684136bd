# SPDX-License-Identifier: Apache-2.0
"""The states of the disk: a throttle must act, dirty pages must not meet the kernel's limits."""
import contextlib
import os
from types import SimpleNamespace

import bench
import dirty_writer
import disk_bench
import disk_states
import pytest
from processes import CommandFailed, Sample

GB = 1_000_000_000
MB = 1_000_000


@pytest.mark.parametrize("plain,throttled,fault", [
    (600 * MB, 120 * MB, ""),
    (600 * MB, 87 * MB, ""),
    (600 * MB, 590 * MB, "does not act: dd wrote 590 MB/s, not 125 MB/s"),
    (600 * MB, 20 * MB, "does not act"),
    (150 * MB, 120 * MB, "writes only 150 MB/s without a throttle")])
def test_throttle_is_refused_unless_dd_shows_that_it_acts(plain, throttled, fault):
    found = disk_states.throttle_fault(plain, throttled)
    assert fault in found and bool(fault) == bool(found)


def test_throttle_that_does_not_act_ends_the_bench(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_states, "THROTTLE", tmp_path / "write_bps_device")
    (tmp_path / "write_bps_device").touch()
    monkeypatch.setattr(disk_states, "write_rate", lambda point: 600 * MB)
    with pytest.raises(CommandFailed, match="the throttle does not act"):
        disk_states.check_throttle(tmp_path)


def test_kernel_without_the_throttle_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(disk_states, "THROTTLE", tmp_path / "missing")
    with pytest.raises(CommandFailed, match="needs the blkio controller of cgroup v1"):
        with disk_states.throttled(tmp_path):
            pass


def test_throttle_ends_with_its_block_also_after_an_error(tmp_path, monkeypatch):
    rule = tmp_path / "write_bps_device"
    rule.touch()
    monkeypatch.setattr(disk_states, "THROTTLE", rule)
    device = os.stat(tmp_path).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    with contextlib.suppress(CommandFailed), disk_states.throttled(tmp_path):
        assert rule.read_text() == f"{name} 125000000"
        raise CommandFailed("a failed run")
    assert rule.read_text() == f"{name} 0"


def test_four_gigabytes_and_the_tree_stay_below_the_limit_that_delays_writers():
    plan = disk_states.plan_dirty(21 * GB, GB)
    assert (plan.amount, plan.background, plan.limit) == (4 * GB, 4 * GB, 8 * GB)
    assert plan.amount + GB <= plan.unthrottled == 6 * GB


def test_a_machine_with_little_memory_keeps_fewer_dirty_pages():
    assert disk_states.plan_dirty(12 * GB, GB).amount == 3 * GB
    with pytest.raises(CommandFailed, match="1.0 GB of dirty pages are too few beside a tree of"):
        disk_states.plan_dirty(4 * GB, GB)


def test_at_the_limit_of_the_machine_every_writer_is_delayed():
    plan = disk_states.machine_plan(500_000, 1_000_000, 4096)
    assert plan.unthrottled < plan.amount < plan.limit
    assert disk_states.machine_plan(10**7, 2 * 10**7, 4096).amount == 4 * GB


@pytest.mark.parametrize("before", [
    {"dirty_ratio": "20", "dirty_bytes": "0", "dirty_background_ratio": "10",
     "dirty_background_bytes": "0"},
    {"dirty_ratio": "0", "dirty_bytes": "900000", "dirty_background_ratio": "10",
     "dirty_background_bytes": "0"}])
def test_limits_of_dirty_pages_are_restored(tmp_path, monkeypatch, before):
    """The fake files lack the kernel's rule that a ratio sets the bytes to 0."""
    monkeypatch.setattr(disk_states, "VM", tmp_path)
    for name, value in before.items():
        (tmp_path / name).write_text(value + "\n")
    with disk_states.dirty_limits(disk_states.DirtyPlan(4 * GB, 4 * GB, 8 * GB)):
        assert (tmp_path / "dirty_bytes").read_text() == str(8 * GB)
        assert (tmp_path / "dirty_background_bytes").read_text() == str(4 * GB)
    for name, value in before.items():
        if value != "0":
            assert (tmp_path / name).read_text().strip() == value


def test_sampler_reports_the_least_and_the_median_of_dirty_pages():
    sampler = disk_states.DirtySampler()
    assert sampler.facts() == {"dirty_least": 0, "dirty_median": 0}
    sampler.samples = [5, 1, 9]
    assert sampler.facts() == {"dirty_least": 1, "dirty_median": 5}


def test_dirty_pages_are_read_from_meminfo():
    text = "MemFree:  12 kB\nWritebackTmp:  3 kB\nDirty:       4096 kB\nWriteback:  1 kB\n"
    assert dirty_writer.parse_dirty(text) == 4 << 20
    with pytest.raises(ValueError):
        dirty_writer.parse_dirty("MemFree: 12 kB\n")


def test_writer_keeps_one_and_a_half_times_the_dirty_pages():
    assert dirty_writer.files_kept(4 << 30) * dirty_writer.FILE_BYTES == 6 << 30
    assert dirty_writer.files_kept(1) == 2


def test_writer_pauses_while_enough_pages_are_dirty(tmp_path, monkeypatch):
    answers, slept = iter([9, 8, 3] + [0] * 100), []
    monkeypatch.setattr(dirty_writer, "parse_dirty", lambda _: next(answers))
    monkeypatch.setattr(dirty_writer.time, "sleep", slept.append)
    monkeypatch.setattr(dirty_writer, "FILE_BYTES", 30)
    dirty_writer.write_file(tmp_path / "file", 5, b"x" * 10)
    assert len(slept) == 2 and (tmp_path / "file").stat().st_size == 30


def test_a_run_keeps_the_facts_of_its_state_and_its_own(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(bench, "read_files", read.append)

    @contextlib.contextmanager
    def state(_course):
        facts = {"rate": 1}
        yield facts
        facts["dirty_median"] = 2
    run = disk_bench.in_state(state, lambda course: Sample(1.0, 1.0, 1.0, notes={"own": 3}))
    course = SimpleNamespace(registry=SimpleNamespace(log=tmp_path / "log"))
    assert run(course).notes == {"own": 3, "rate": 1, "dirty_median": 2}
    assert read == [tmp_path]
