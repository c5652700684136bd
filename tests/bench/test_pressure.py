# SPDX-License-Identifier: Apache-2.0
"""Waits by the kernel's pressure counters."""
import pressure

FILE = ("some avg10=0.00 avg60=1.50 avg300=0.00 total=27464\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n")


def test_totals_are_in_seconds():
    assert pressure.total_of(FILE, "full") == 1.5
    assert pressure.total_of(FILE, "some") == 0.027464


def test_waits_are_those_until_the_tree_was_active():
    samples = [(10.0, 0.1, 0.0), (11.0, 0.4, 0.2), (12.0, 0.5, 9.0)]
    assert pressure.waits_until(samples, 11.5) == {"cpu_wait": 0.4, "disk_wait": 0.2}
    assert pressure.waits_until(samples, 12.0)["disk_wait"] == 9.0
    assert pressure.waits_until(samples, 9.0) == {}


def test_kernel_without_counters_runs_the_command_as_it_is(monkeypatch):
    monkeypatch.setattr(pressure, "ROOTS", ())
    with pressure.watched() as found:
        assert found.inside(["fetch", "a"]) == ["fetch", "a"]
        assert found.waits(1.0) == {}


def test_counters_are_sampled_until_the_block_ends(tmp_path):
    for name in ("cpu", "io"):
        (tmp_path / f"{name}.pressure").write_text(FILE)
    found = pressure.Pressure(tmp_path)
    found.thread.start()
    while not found.samples:
        pass
    found.stopped.set()
    found.thread.join(60)
    assert found.waits(float("inf")) == {"cpu_wait": 0.027464, "disk_wait": 1.5}
    assert found.inside(["fetch"])[-2:] == [str(tmp_path), "fetch"]
