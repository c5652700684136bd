# SPDX-License-Identifier: Apache-2.0
"""The Python package with the real program and a real store."""
import importlib
import logging
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(os.environ.get("CACHEWARM_PROGRAMS", ROOT / "build/dev/cli"))


@pytest.fixture
def door(tmp_path, monkeypatch):
    """The package, with a store and a home of its own and without variables of the caches."""
    for variable in list(os.environ):
        if "CACHE" in variable and variable not in ("CACHEWARM_PROGRAMS", "CACHEWARM_CACHE"):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("CACHEWARM_BIN", str(PROGRAMS / "cachewarm"))
    monkeypatch.setenv("CACHEWARM_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.syspath_prepend(str(ROOT / "python"))
    environment = dict(os.environ)
    yield importlib.import_module("cachewarm")
    os.environ.clear()
    os.environ.update(environment)


def compile_once(text="print(1)\n"):
    """Does what a compiler does; returns whether its entry was there."""
    entry = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) / "ab/cab.py"
    if entry.exists():
        return True
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.write_text(text)
    return False


def forget_machine(tmp_path, name):
    """Makes the next start one on another machine: another home, no variables."""
    for variable in list(os.environ):
        if variable.endswith(("_CACHE_DIR", "_CACHE_ROOT")):
            del os.environ[variable]
    os.environ["XDG_CACHE_HOME"] = str(tmp_path / name)


def test_second_machine_starts_warm(door, tmp_path):
    with door.synchronized("my-model/v1"):
        assert not compile_once()
    forget_machine(tmp_path, "second")
    with door.synchronized("my-model/v1"):
        assert compile_once()
    forget_machine(tmp_path, "third")
    with door.synchronized("my-model/v2"):
        assert not compile_once(), "another name has another bundle"


def test_block_that_raises_is_saved_and_raises(door, tmp_path):
    with pytest.raises(RuntimeError, match="out of memory"):
        with door.synchronized("my-model/v1"):
            compile_once()
            raise RuntimeError("out of memory")
    forget_machine(tmp_path, "second")
    assert door.load("my-model/v1") is door.OperationStatus.SUCCESS


def test_statuses_are_the_four_words_of_b10_transfer(door, tmp_path):
    assert [status.name for status in door.OperationStatus] == ["SUCCESS", "ERROR",
                                                                "DOES_NOT_EXIST", "SKIPPED"]
    assert door.load_compile_cache() is door.OperationStatus.DOES_NOT_EXIST
    assert door.save_compile_cache() is door.OperationStatus.SKIPPED
    compile_once()
    assert door.save_compile_cache() is door.OperationStatus.SUCCESS
    assert door.save_compile_cache() is door.OperationStatus.SKIPPED
    assert door.load_compile_cache() is door.OperationStatus.SKIPPED
    forget_machine(tmp_path, "second")
    assert door.load_compile_cache() is door.OperationStatus.SUCCESS


def test_arguments_replace_the_environment(door, tmp_path, monkeypatch):
    monkeypatch.delenv("CACHEWARM_STORE")
    assert door.load() is door.OperationStatus.ERROR
    choice = {"store": tmp_path / "other", "directory": tmp_path / "cache"}
    (tmp_path / "cache/inductor/ab").mkdir(parents=True)
    (tmp_path / "cache/inductor/ab/cab.py").write_text("print(1)\n")
    assert door.save("llama", **choice) is door.OperationStatus.SUCCESS
    choice["directory"] = tmp_path / "cache2"
    assert door.load("llama", **choice, options=("--max-bytes", "1")) is door.OperationStatus.ERROR
    assert door.load("llama", **choice) is door.OperationStatus.SUCCESS
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "cache2/inductor")


def test_set_variables_stay(door, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "torch"))
    with door.synchronized("my-model/v1"):
        assert not compile_once()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "torch")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "torch2")
    with door.synchronized("my-model/v1"):
        assert compile_once()


@pytest.mark.parametrize("program", ["", "/nonexistent", "/bin/true", "/bin/false"])
def test_program_without_a_result_is_an_error_and_raises_nothing(door, monkeypatch, caplog,
                                                                 program):
    monkeypatch.setenv("CACHEWARM_BIN", program)
    monkeypatch.setenv("PATH", "")
    with caplog.at_level(logging.INFO, "cachewarm"):
        assert door.load() is door.OperationStatus.ERROR
        assert door.save() is door.OperationStatus.ERROR
    assert "cachewarm" in caplog.text


def test_wheel_installs_and_is_reproducible(tmp_path):
    for folder in ("one", "two"):
        subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-index", "-q", "-w",
                        str(tmp_path / folder), str(ROOT / "python")], check=True)
    one, two = (next((tmp_path / folder).glob("cachewarm-*.whl")) for folder in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "-q",
                    "--target", str(tmp_path / "site"), str(one)], check=True)
    assert zipfile.ZipFile(one).testzip() is None
    done = subprocess.run([sys.executable, "-c", "import cachewarm; print(cachewarm.__file__)"],
                          env={"PYTHONPATH": str(tmp_path / "site")}, text=True,
                          capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout.startswith(str(tmp_path / "site"))
