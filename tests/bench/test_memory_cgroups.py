# SPDX-License-Identifier: Apache-2.0
"""Memory cgroups: counters of both versions, and what the chart has."""
import errno
import subprocess
from pathlib import Path
from types import SimpleNamespace

import disk_bench
import memory_cgroups
import pytest
from memory_cgroups import Counted, MemoryCgroup
from processes import CommandFailed

VALUES = Path(__file__).parents[2] / "charts/cachewarm/values.yaml"
FILES_V1 = {"memory.max_usage_in_bytes": "67108864\n", "memory.failcnt": "12\n",
            "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"}
FILES_V2 = {"memory.peak": "67108864\n",
            "memory.events": "low 0\nhigh 5\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"}


@pytest.mark.parametrize("number,files", [(1, FILES_V1), (2, FILES_V2)])
def test_counters_are_read(tmp_path, number, files):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert MemoryCgroup(tmp_path, number).counted() == Counted(64 << 20, 12, 2)


def test_missing_counter_is_zero():
    assert memory_cgroups.number_after("oom_kill_disable 1\nunder_oom_kill 7\n", "oom_kill") == 0
    assert memory_cgroups.number_after("nr_dirty_threshold 5\nnr_dirty 3", "nr_dirty") == 3


@pytest.mark.parametrize("number,name", [(1, "memory.limit_in_bytes"), (2, "memory.max")])
def test_limit_is_written_in_bytes(tmp_path, number, name):
    MemoryCgroup(tmp_path, number).limit(64 << 20)
    assert (tmp_path / name).read_text() == "67108864"


def test_command_enters_its_cgroup_before_it_begins(tmp_path):
    group = MemoryCgroup(tmp_path, 1)
    done = subprocess.run(group.inside(["bash", "-c", 'echo "$$ $1"', "name", "a b"]),
                          capture_output=True, text=True, check=True, timeout=60)
    process, word = done.stdout.strip().split(" ", 1)
    assert (tmp_path / "cgroup.procs").read_text().strip() == process
    assert word == "a b"


class Folder:
    """A cgroup whose removal fails with these errors first."""

    def __init__(self, *errors):
        self.errors = list(errors)

    def rmdir(self):
        if self.errors:
            raise OSError(self.errors.pop(0), "rmdir")


def test_cgroup_is_removed_when_its_killed_processes_are_gone(monkeypatch):
    monkeypatch.setattr(memory_cgroups.time, "sleep", lambda _: None)
    busy = Folder(errno.EBUSY, errno.EBUSY)
    memory_cgroups.remove_cgroup(busy)
    assert busy.errors == []
    with pytest.raises(PermissionError):
        memory_cgroups.remove_cgroup(Folder(errno.EACCES))
    monkeypatch.setattr(memory_cgroups, "REMOVE_SECONDS", -1)
    with pytest.raises(OSError):
        memory_cgroups.remove_cgroup(Folder(errno.EBUSY))


def test_chart_memory_is_that_of_the_agent():
    text = ("operator:\n  resources:\n    requests: {cpu: 1, memory: 64Mi}\n"
            "    limits: {memory: 256Mi}\nagent:\n  image: {}\n\n  # words\n  resources:\n"
            "    requests: {cpu: 20m, memory: 32Mi}\n    limits: {memory: 512Mi}\n"
            "other:\n    requests: {cpu: 1, memory: 1Mi}\n    limits: {memory: 2Mi}\n")
    assert memory_cgroups.chart_memory(text) == (32, 512)
    request, limit = memory_cgroups.chart_memory(VALUES.read_text())
    assert 0 < request <= limit
    with pytest.raises(ValueError, match="no memory in Mi"):
        memory_cgroups.chart_memory("agent:\n  resources: {}\noperator:\n    requests: "
                                    "{cpu: 1, memory: 1Mi}\n    limits: {memory: 2Mi}\n")


class Group:
    """A cgroup in which the kernel killed `kills` processes."""

    def __init__(self, kills):
        self.kills = kills

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def inside(self, command):
        return ["false", *command]

    def counted(self):
        return Counted(3 << 20, 7, self.kills)


@pytest.fixture
def course(tmp_path):
    return SimpleNamespace(log=tmp_path / "log",
                           fetch_command=lambda tag, options=(): ["fetch", tag, *options])


def test_run_that_the_kernel_killed_is_a_result(course, monkeypatch):
    monkeypatch.setattr(memory_cgroups, "memory_cgroup", lambda limit: Group(1))
    notes = disk_bench.in_memory(64, course).notes
    assert notes == {"peak_mib": 3.0, "reclaims": 7, "oom_kills": 1}


def test_run_that_failed_otherwise_is_a_failure(course, monkeypatch):
    monkeypatch.setattr(memory_cgroups, "memory_cgroup", lambda limit: Group(0))
    with pytest.raises(CommandFailed, match="exit status 1"):
        disk_bench.in_memory(64, course)
