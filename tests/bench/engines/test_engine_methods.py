# SPDX-License-Identifier: Apache-2.0
"""The command line, the machines and the order of the methods of `make bench-engines`."""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import engine_bench
import machines
import methods
import pytest
import results

DIRECTORIES = [f"--{name}-dir=/x" for name in ("torch", "engines", "peers", "redis")]


def test_every_model_has_methods_that_the_results_know():
    for engine in methods.engines(Path("/t"), Path("/e")).values():
        assert engine.methods[:2] == ("cold", "warm") and engine.methods[-1] in results.CACHEWARM
        assert set(engine.methods) <= set(results.METHODS)
        assert (methods.HERE / "programs" / engine.program).is_file()


def test_torch_models_have_all_methods():
    known = methods.engines(Path("/t"), Path("/e"))
    for model in ("transformer", "resnet152", "decoder"):
        assert known[model].methods == results.METHODS
        assert known[model].command("load", "mega")[-3:] == [model, "load", "mega"]


def test_options_choose_rounds_models_and_methods():
    options = engine_bench.parse(
        [*DIRECTORIES, "--rounds", "3", "--models", "jax,vllm", "--methods", "copy, cachewarm run"])
    assert options.rounds == 3 and options.models == ["jax", "vllm"]
    assert options.methods == ["copy", "cachewarm run"]
    assert engine_bench.parse(DIRECTORIES).methods == list(results.METHODS)


@pytest.mark.parametrize("words", [["--rounds", "0"], ["--rounds", "101"], ["--models", "gpt"],
                                   ["--methods", "zip"]])
def test_invalid_option_is_refused(words, capsys):
    with pytest.raises(SystemExit) as ended:
        engine_bench.parse([*DIRECTORIES, *words])
    assert ended.value.code == 2 and words[0] in capsys.readouterr().err


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(argparse.ArgumentTypeError, match="unknown: c; known: a, b"):
        engine_bench.choice(("a", "b"))("a,c")


def test_last_result_line_of_a_program_counts():
    text = 'warning\nRESULT {"hits": 1}\nRESULT {"hits": 2}\nbye\n'
    assert machines.parse(text) == {"hits": 2} and machines.parse("no line") is None


def test_bytes_of_a_volume_count_files_once(tmp_path):
    volume = machines.Volume(tmp_path)
    (volume.path / "data/a/b").mkdir(parents=True)
    (volume.path / "data/a/b/x").write_bytes(b"12345")
    (volume.path / "data/y").write_bytes(b"123")
    assert volume.bytes_of("data/a") == 5 and volume.bytes_of("data/**") == 8
    assert volume.bytes_of("data/none") == 0


# Stands for torch: hits if its only entry is there, and saves it as a mega-cache.
PLAYED_TORCH = """
import base64, json, os, pathlib, sys, time, zlib
begin = time.clock_gettime(time.CLOCK_BOOTTIME)
entry = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], "dynamo/code_state_job.pkl")
hit = entry.exists()
entry.parent.mkdir(parents=True, exist_ok=True)
entry.write_bytes(b"profile")
sized = lambda data: len(data).to_bytes(8, "big") + data
if "save" in sys.argv:
    rest = b"".join([(1).to_bytes(8, "big"), sized(base64.b64encode(b"pgo")),
                     (1).to_bytes(8, "big"), sized(base64.b64encode(b"job")), sized(b"profile")])
    pathlib.Path("/data/mega.bin").write_bytes(zlib.crc32(rest).to_bytes(4, "big") + rest)
print("RESULT " + json.dumps({
    "started": begin, "ended": time.clock_gettime(time.CLOCK_BOOTTIME), "first_call_seconds": 0.1,
    "native_rebuilt": 0, "hits": int(hit), "misses": int(not hit), "save_seconds": {"mega": 0.5}}))
"""


class PlayedEngine(methods.Engine):
    def command(self, *words):
        return [str(self.python), "-c", PLAYED_TORCH, *words]


def test_another_machine_starts_with_an_imported_mega_cache(tmp_path, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("mount namespaces need root")
    programs = Path(os.environ.get("CACHEWARM_PROGRAMS", methods.ROOT / "build/dev/cli"))
    monkeypatch.setattr(methods, "CACHEWARM", programs / "cachewarm")
    engine = PlayedEngine(Path("/usr/bin/python3"), "", (), "TORCHINDUCTOR_CACHE_DIR", "inductor",
                          ("cold", "warm", "cachewarm import"))
    one = methods.ModelRound(engine, ["cachewarm import"], tmp_path,
                             methods.Tools(Path("/x"), Path("/x")), lambda method, sample: None)
    with machines.MountPoints():
        one.run()
    assert list(one.samples) == ["cold", "warm", "cachewarm import"]
    started = one.samples["cachewarm import"]
    assert (started.hits, started.misses) == (1, 0) and one.samples["cold"].misses == 1
    assert started.save_seconds > 0.5 and started.bytes > 0


@pytest.fixture
def machine(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("mount namespaces need root")
    with machines.MountPoints():
        yield machines.Machine(tmp_path, machines.Volume(tmp_path))


PRINT = """
import json, os, pathlib, time
pathlib.Path("/data/seen").write_text("x")
print(sorted(os.listdir("/tmp")), os.environ["HOME"], os.environ["GIVEN"], len(os.listdir("/app")))
now = time.clock_gettime(time.CLOCK_BOOTTIME)
print("RESULT " + json.dumps({"started": now, "ended": now, "tmp": os.listdir("/tmp")}))
"""


def test_machine_has_its_own_tmp_and_shares_its_volume(machine):
    (machine.tmp / "mine").write_text("")
    with tempfile.NamedTemporaryFile(dir="/tmp") as of_the_host:
        run = machine.run(["/usr/bin/python3", "-c", PRINT], {"GIVEN": "1"})
    assert {"home", "mine"} <= set(run.result["tmp"])
    assert Path(of_the_host.name).name not in run.result["tmp"]
    assert (machine.volume.path / "data/seen").read_text() == "x"
    assert run.before > 0 and run.after > 0


def test_machine_sees_a_checkout_in_tmp(machine, monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as checkout:
        monkeypatch.setattr(machines, "CHECKOUT", Path(checkout))
        program = Path(checkout, "a/program")
        program.parent.mkdir()
        program.write_text(f"#!/usr/bin/python3\n{PRINT}")
        program.chmod(0o755)
        run = machine.run([str(program)], {"GIVEN": "1"})
    assert sorted(run.result["tmp"]) == sorted(["home", Path(checkout).name])


ORPHAN_SECONDS = 0.2
# The child computes for long; the parent ends once the child has computed for ORPHAN_SECONDS.
LEAVE_ORPHAN = f"""
import os, time
child = os.fork()
while child == 0:
    if time.process_time() > 10:
        os._exit(0)
while sum(map(int, open(f"/proc/{{child}}/stat").read().split()[13:15])) < {ORPHAN_SECONDS} * 100:
    time.sleep(0.01)
now = time.clock_gettime(time.CLOCK_BOOTTIME)
print('RESULT {{"started": %f, "ended": %f}}' % (now, now))
"""


def test_processor_time_includes_a_process_that_the_program_left(machine):
    run = machine.run(["/usr/bin/python3", "-c", LEAVE_ORPHAN], {})
    assert run.cpu >= ORPHAN_SECONDS


def test_interrupted_bench_leaves_no_program(machine, monkeypatch):
    def interrupt(process):
        while not (machine.tmp / "began").exists():
            assert process.poll() is None
        raise KeyboardInterrupt

    monkeypatch.setattr(machines, "_wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        machine.run(["bash", "-c", "touch /tmp/began; exec sleep 300.1"], {})
    deadline = time.monotonic() + 60
    search = ["pgrep", "-f", "sleep 300.1"]
    while subprocess.run(search, stdout=subprocess.DEVNULL).returncode == 0:
        assert time.monotonic() < deadline, "the program is still there"
        time.sleep(0.05)


def test_failed_program_shows_its_last_lines(machine):
    with pytest.raises(machines.RunFailed, match="(?s)exit status 3.*no such kernel"):
        machine.run(["bash", "-c", "echo no such kernel; exit 3"], {})


def test_program_without_a_result_line_is_a_failure(machine):
    with pytest.raises(machines.RunFailed, match="exit status 0"):
        machine.run(["true"], {})
