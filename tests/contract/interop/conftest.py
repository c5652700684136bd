# SPDX-License-Identifier: Apache-2.0
"""Fixtures: bundles that `cachewarm pack` pushed to several registries, built by `make interop`."""
import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/bench"))
from corpora import CACHE  # noqa: E402
from servers import REGISTRY, Containerd, Registry  # noqa: E402

DEV = ROOT / "build/dev"
SECONDS = 300
REGISTRIES = {"distribution2": REGISTRY,
              "distribution3": CACHE / "distribution/current/registry",
              "goregistry": CACHE / "goregistry/current/goregistry"}
COSIGN = CACHE / "cosign/current/cosign"
CRANE = CACHE / "crane/current/crane"
ORAS = CACHE / "bench-peers/current/oras"
FACTS = '{"gpuType":"nvidia/h100-80gb-hbm3/sm_90","cpuClass":"x86-64-v3/intel-6-85/0123abcd"}'


def run(*words, code=0, **options):
    """Runs a program and returns its result. Fails unless its exit status is `code`."""
    environment = {**os.environ, "COSIGN_PASSWORD": "", "HOME": tempfile.gettempdir()}
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=SECONDS, env=environment, check=False,
                          **options)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stderr.decode()[-2000:]}"
    return done


def cachewarm(*words, code=0):
    """Runs the cachewarm binary of the development build."""
    return run(DEV / "cli/cachewarm", *words, code=code)


def files_below(directory):
    """Returns the content of every file by its path."""
    return {str(path.relative_to(directory)): path.read_bytes()
            for path in Path(directory).rglob("*") if path.is_file()}


def make_tree(directory, seed):
    """Creates a cache of many small files, some of them duplicates, and one larger than a frame."""
    noise = random.Random(seed)
    sizes = [noise.randrange(1, 60_000) for _ in range(60)] + [9_000_000]
    for number, size in enumerate(sizes):
        path = directory / f"inductor/{number % 7:02d}/c{number:04d}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {noise.randbytes(size // 2).hex()}\n")
    # A second rank with the same artifacts: hard links in the layer.
    shutil.copytree(directory / "inductor/03", directory / "inductor/99")
    return directory


@dataclass
class Bundle:
    """A bundle in a registry."""
    tree: Path
    host: str
    name: str
    digest: str

    @property
    def image(self):
        """Its name for container tools."""
        return f"{self.host}/{self.name}@{self.digest}"

    @property
    def url(self):
        """Its URL for cachewarm."""
        return f"oci://{self.image}"


def pack(folder, registry, name, seed):
    """Packs a new tree into a registry and returns the bundle."""
    tree = make_tree(folder / f"tree-{seed}", seed)
    facts = folder / "facts.json"
    facts.write_text(FACTS)
    done = cachewarm("pack", tree, f"oci://{registry.host}/{name}:packed", "--node-facts", facts)
    return Bundle(tree, registry.host, name, done.stdout.decode().strip().partition("@")[2])


@pytest.fixture(scope="module", params=list(REGISTRIES))
def registry(request, tmp_path_factory):
    """Runs the tests with each kind of registry."""
    folder = tmp_path_factory.mktemp("registry") / "served"
    with Registry(folder, REGISTRIES[request.param]) as server:
        yield server


@pytest.fixture(scope="module")
def bundle(registry, tmp_path_factory):
    """A bundle in the registry."""
    return pack(tmp_path_factory.mktemp("bundle"), registry, "team/llama", 1)


@pytest.fixture(scope="module")
def containerd(tmp_path_factory):
    """A containerd that unpacks the images that it pulls."""
    with tempfile.TemporaryDirectory(prefix="cw-") as short:
        folder = tmp_path_factory.mktemp("containerd") / "served"
        with Containerd(folder, Path(short)) as server:
            server.folder = folder
            yield server
