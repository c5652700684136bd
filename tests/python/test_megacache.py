# SPDX-License-Identifier: Apache-2.0
"""`cachewarm import` and `cachewarm export` with the real torch."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(os.environ.get("CACHEWARM_PROGRAMS", ROOT / "build/dev/cli"))
PROCESS = Path(__file__).parent / "torch_process.py"


@pytest.fixture(scope="module")
def torch():
    found = subprocess.run([str(ROOT / "tools/setup/torch-venv")], check=True, text=True,
                           stdout=subprocess.PIPE)
    return Path(found.stdout.strip().splitlines()[-1]) / "bin/python"


def cachewarm(*arguments, **variables):
    environment = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    done = subprocess.run([str(PROGRAMS / "cachewarm"), *map(str, arguments)], text=True,
                          env={**environment, **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return done


class Torch:
    """Starts processes of torch with the directory of torch below a cache directory."""

    def __init__(self, python, folder):
        self.python, self.folder, self.starts = python, folder, 0

    def start(self, directory, *arguments, job="job"):
        """Without a job torch uses no profile of dynamic shapes."""
        self.starts += 1
        result = self.folder / f"result{self.starts}.json"
        environment = {name: value for name, value in os.environ.items() if "CACHE" not in name}
        environment |= {
            "TORCHINDUCTOR_CACHE_DIR": str(directory), "TORCH_COMPILE_JOB_ID": job,
            "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0", "TORCHINDUCTOR_VEC_ISA_OK": "1",
            "TORCHINDUCTOR_COMPILE_THREADS": "1", "TMPDIR": str(self.folder)}
        done = subprocess.run([str(self.python), str(PROCESS), str(result), *map(str, arguments)],
                              env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        values = json.loads(result.read_text())
        assert values["difference"] < 1e-4
        return values


@pytest.fixture(scope="module")
def saved(torch, tmp_path_factory):
    """A cold process of torch: its directory, its artifact and what it counted."""
    folder = tmp_path_factory.mktemp("saved")
    values = Torch(torch, folder).start(folder / "torch", "--save", folder / "artifact.bin",
                                        "--extra")
    assert values["inductor"]["fxgraph_cache_miss"] == 3 and values["built"] >= 3
    assert set(values["saved"]) == {"inductor", "aot_autograd", "pgo", "autotune", "precompile"}
    return folder, values


def assert_full_hit(values, graphs=2):
    """With the profile, the second function is dynamic at once: two graphs instead of three."""
    assert values["built"] == 0
    assert values["inductor"]["fxgraph_cache_hit"] == graphs
    assert values["inductor"].get("fxgraph_cache_miss", 0) == 0
    assert values["aot_autograd"]["autograd_cache_hit"] == graphs
    assert values["aot_autograd"].get("autograd_cache_saved", 0) == 0


def imported(saved, target, *flags):
    done = cachewarm("import", saved[0] / "artifact.bin", "--dir", target, "--json", *flags)
    return json.loads(done.stdout)


def test_start_on_an_imported_artifact_is_a_full_hit(torch, saved, tmp_path):
    report = imported(saved, tmp_path / "cache", "--with", saved[0] / "torch")
    assert report["kernels"] == report["compiled"] == saved[1]["built"]
    assert report["environment"]["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"] == "0"
    values = Torch(torch, tmp_path).start(tmp_path / "cache/inductor")
    assert_full_hit(values)


def test_missing_object_is_built_again_and_a_missing_entry_is_a_miss(torch, saved, tmp_path):
    """Removes the entry of the first function, and the object of a kernel of the second."""
    imported(saved, tmp_path / "cache", "--with", saved[0] / "torch")
    inductor = tmp_path / "cache/inductor"
    [entry] = [path for path in inductor.glob("fxgraph/*/*/*")
               if b"native_layer_norm" in path.read_bytes()]
    entry.unlink()
    [source] = [path for path in inductor.glob("*/*.main.cpp") if b"ks0" in path.read_bytes()]
    source.with_suffix(".so").unlink()
    values = Torch(torch, tmp_path).start(inductor)
    assert values["inductor"]["fxgraph_cache_miss"] >= 1
    assert values["inductor"]["fxgraph_cache_hit"] == 1
    assert values["built"] == 1


def test_import_without_the_directory_says_how_many_kernels_are_built(torch, saved, tmp_path):
    report = imported(saved, tmp_path / "cache")
    assert (report["kernels"], report["compiled"]) == (saved[1]["built"], 0)
    values = Torch(torch, tmp_path).start(tmp_path / "cache/inductor", job="")
    assert values["inductor"]["fxgraph_cache_hit"] == 3
    assert values["built"] == report["kernels"]


def test_torch_loads_an_export_and_makes_the_same_files_of_it(torch, saved, tmp_path):
    imported(saved, tmp_path / "cache", "--with", saved[0] / "torch")
    cachewarm("export", "--dir", tmp_path / "cache", "--output", tmp_path / "exported.bin")
    # The objects stay: an artifact cannot hold them.
    shutil.copytree(tmp_path / "cache/inductor", tmp_path / "other", ignore=shutil.ignore_patterns(
        "fxgraph", "aotautograd", "dynamo", "*.best_config"))
    values = Torch(torch, tmp_path).start(tmp_path / "other", "--load", tmp_path / "exported.bin")
    for kind, keys in saved[1]["saved"].items():
        loaded = values["loaded"][kind]
        expected = {key.replace(":", "_") for key in keys} if kind == "pgo" else set(keys)
        assert set(loaded) == expected, kind
    inductor = tmp_path / "cache/inductor"
    files = {str(path.relative_to(inductor)): path.read_bytes().hex()
             for top in ("fxgraph", "aotautograd", "dynamo", "ab")
             for path in (inductor / top).rglob("*")
             if path.is_file() and path.suffix in ("", ".pkl", ".best_config")}
    assert values["files"] == files
    assert_full_hit(values)


def test_artifact_of_another_version_is_refused_by_name(saved, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c",
         "import sys, zlib; data = open(sys.argv[1], 'rb').read(); rest = bytearray(data[4:]);"
         "rest[7] = 2; open(sys.argv[2], 'wb').write(zlib.crc32(rest).to_bytes(4, 'big') + rest)",
         str(saved[0] / "artifact.bin"), str(tmp_path / "newer.bin")], check=True)
    assert done.returncode == 0
    refused = subprocess.run([str(PROGRAMS / "cachewarm"), "import", str(tmp_path / "newer.bin"),
                              "--dir", str(tmp_path / "cache")], text=True, capture_output=True)
    assert refused.returncode == 1
    assert "format version 2 is unknown" in refused.stderr
    assert not (tmp_path / "cache").exists()
