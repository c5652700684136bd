# SPDX-License-Identifier: Apache-2.0
"""GPU code of real compilers in bundles: ptxas, NVRTC, nvFatbin and Triton, without a GPU."""
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(os.environ.get("CACHEWARM_PROGRAMS", ROOT / "build/dev/cli"))
HERE = Path(__file__).parent
FACTS = {"gpuType": "nvidia/test/{}", "cpuClass": "x86-64-v3/test-0-0/00000000"}
# Triton 3.9 compiles with the suffix "a" from sm_90 on.
TRITON = {"80": "sm_80", "89": "sm_89", "90": "sm_90a", "100": "sm_100a", "120": "sm_120a"}


def printed(*words):
    done = subprocess.run([str(word) for word in words], check=True, text=True,
                          stdout=subprocess.PIPE)
    return done.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def torch():
    return Path(printed(ROOT / "tools/setup/torch-venv")) / "bin/python"


@pytest.fixture(scope="module")
def samples(torch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    subprocess.run([str(torch), str(HERE / "gpu_samples.py"), str(folder),
                    printed(ROOT / "tools/setup/nvfatbin")], check=True)
    return folder


def cachewarm(*words, **variables):
    environment = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    return subprocess.run([str(PROGRAMS / "cachewarm"), *map(str, words)], text=True,
                          env={**environment, **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


def facts_file(folder, architecture):
    file = folder / f"{architecture}.json"
    file.write_text(json.dumps({**FACTS, "gpuType": FACTS["gpuType"].format(architecture)}))
    return file


def code_in(sample, folder, architecture="sm_90"):
    """The architectures that a bundle of the cache directory `sample` names."""
    bundle = f"layout://{folder}/store/code:{sample.name}"
    packed = cachewarm("pack", sample, bundle, "--node-facts", facts_file(folder, architecture))
    assert packed.returncode == 0, packed.stderr
    shown = cachewarm("inspect", bundle, "--json")
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)["requires"]["gpuArchitectures"]


@pytest.mark.parametrize("target", TRITON)
def test_files_of_triton_name_their_cubin_and_their_ptx(samples, tmp_path, target):
    binary = TRITON[target]
    assert code_in(samples / f"triton-{target}", tmp_path) == \
        sorted([binary, binary.replace("sm_", "compute_")])


@pytest.mark.parametrize("suffix", ["80", "89", "90a", "100", "120"])
@pytest.mark.parametrize("compiler", ["ptxas", "nvrtc"])
def test_cubin_names_its_architecture(samples, tmp_path, compiler, suffix):
    assert code_in(samples / f"{compiler}-{suffix}", tmp_path) == [f"sm_{suffix}"]


def test_fat_binary_names_every_image(samples, tmp_path):
    assert code_in(samples / "fat", tmp_path) == \
        ["compute_90", "sm_100", "sm_120", "sm_80", "sm_90a"]
    assert code_in(samples / "fat-compressed", tmp_path) == ["sm_89", "sm_90a"]
    assert code_in(samples / "fat-ptx", tmp_path) == ["compute_90a"]


@pytest.mark.parametrize("file", ["fill.fatbin", "fill.o", "fill.so"])
def test_fat_binary_is_found_in_each_file_that_can_hold_it(samples, tmp_path, file):
    kept = tmp_path / "fat/torch_extensions/fill" / file
    kept.parent.mkdir(parents=True)
    kept.write_bytes((samples / "fat/torch_extensions/fill" / file).read_bytes())
    assert "sm_90a" in code_in(tmp_path / "fat", tmp_path)


def test_bundle_without_code_for_the_gpu_is_refused(samples, tmp_path):
    """The store has a bundle for an sm_80 GPU under the key of an sm_120 GPU."""
    facts = facts_file(tmp_path, "sm_120")
    words = ("--store", f"layout://{tmp_path}/store", "--name", "code", "--node-facts", facts,
             "--python", "/nonexistent")
    saved = cachewarm("save", *words, "--dir", samples / "ptxas-80")
    assert saved.returncode == 0, saved.stderr
    loaded = cachewarm("load", *words, "--dir", tmp_path / "cache")
    assert loaded.returncode != 0
    assert "has GPU code only for sm_80, and a node of that type runs code for sm_120" in \
        loaded.stderr
    assert not (tmp_path / "cache/inductor").exists()


def test_kernels_of_triton_hit_in_another_directory(torch, tmp_path):
    """A group file of Triton names its members by absolute paths."""
    def compile_in(directory):
        return int(printed(torch, HERE / "triton_kernel.py", directory / "triton", "90"))

    words = ("--store", f"layout://{tmp_path}/store", "--name", "code",
             "--node-facts", facts_file(tmp_path, "sm_90"), "--python", "/nonexistent")
    assert compile_in(tmp_path / "here") > 0
    assert cachewarm("save", *words, "--dir", tmp_path / "here").returncode == 0
    (tmp_path / "here").rename(tmp_path / "gone")
    elsewhere = tmp_path / "else/where"
    loaded = cachewarm("load", *words, "--dir", elsewhere)
    assert loaded.returncode == 0, loaded.stderr
    assert compile_in(elsewhere) == 0
