# SPDX-License-Identifier: Apache-2.0
"""The corpus as a directory, with the layout of /var/cache/cachewarm in a vLLM pod.

The same Shape gives the same bytes for any number of jobs. All files can be captured, so that all
contenders transfer the same ones.
"""
import hashlib
import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import inductor, ir, kernels
from .kernels import NAMES, hash52

KINDS = ["poi", "red", "per", "mm"]
MEMBERS = ("cubin", "json", "llir", "ptx", "ttgir", "ttir", "source")


@dataclass(frozen=True)
class Shape:
    """How much of each; `pickle_mu` is the mean of the log of a pickle's megabytes."""
    kernels: int
    py: int
    pickles: int
    so: int
    ranks: int
    pickle_mu: float
    seed: int


BIG = Shape(kernels=2250, py=1400, pickles=150, so=90, ranks=2, pickle_mu=0.95, seed=20240)
SMALL = Shape(kernels=165, py=110, pickles=12, so=8, ranks=1, pickle_mu=0.45, seed=7)


def config_hash(shape):
    """The directory that vLLM names after its configuration."""
    return hashlib.sha256(str(shape.seed).encode()).hexdigest()[:10]


def rank_folder(root, shape, rank):
    """Where one rank of a tensor-parallel engine keeps its caches."""
    return root / "vllm/torch_compile_cache" / config_hash(shape) / f"rank_{rank}_0"


def add_kernel(base, rank, index, seed, material):
    """One directory of Triton's cache. Returns (directory, kernel's name)."""
    rng = random.Random(f"{seed}/{rank}/{index}")
    words = "_".join(rng.choice(NAMES) for _ in range(rng.randrange(1, 6)))
    name = f"triton_{rng.choice(KINDS)}_fused_{words}_{index % 97}"
    operations, registers = kernels.draw_operations(rng, kernels.draw_length(rng))
    folder = base / "triton_cache" / hash52(seed, rank, index, name).upper()
    folder.mkdir(parents=True)
    ptx = kernels.ptx_of(name, operations, registers, rng)
    cubin = folder / f"{name}.cubin"
    material.compile(ptx, cubin)
    source = inductor.output_code(name, operations, rng, index).split("\n")
    texts = {"ptx": ptx, "ttir": ir.ttir_of(name, operations, False),
             "ttgir": ir.ttir_of(name, operations, True), "llir": ir.llir_of(name, operations),
             "source": "\n".join(source[40:120]),
             "json": ir.metadata_of(name, rng, cubin.stat().st_size)}
    for extension, text in texts.items():
        (folder / f"{name}.{extension}").write_text(text)
    final = f"{kernels.CACHE}/triton_cache/{folder.name}"
    children = {f"{name}.{e}": f"{final}/{name}.{e}" for e in MEMBERS}
    (folder / f"__grp__{name}.json").write_text(json.dumps({"child_paths": children}))
    return folder, name


def add_output_code(base, rank, index, seed, material):
    """One c<hash>.py, every third with the result of an autotune beside it."""
    rng = random.Random(f"py{seed}/{rank}/{index}")
    name = hash52("py", seed, rank, index)[:51]
    folder = base / "inductor_cache" / name[:2]
    folder.mkdir(parents=True, exist_ok=True)
    if index % 8 == 7:
        text = material.text(index * 131 + rank)
    else:
        operations, _ = kernels.draw_operations(rng, kernels.draw_length(rng) // 2)
        kernel = "triton_poi_fused_" + "_".join(rng.choice(NAMES) for _ in range(3))
        text = inductor.output_code(f"{kernel}_{index}", operations, rng, index)
    (folder / f"c{name}.py").write_text(text)
    if index % 3 == 0:
        (folder / f"{name}.best_config").write_text(json.dumps({
            "XBLOCK": 2 ** rng.randrange(5, 11), "num_warps": 4, "num_stages": 1,
            "configs_hash": hashlib.sha256(name.encode()).hexdigest(),
            "found_by_coordesc": False, "time_taken_ms": rng.randrange(999),
            "triton_cache_hash": hash52(name)}))


def add_pickle(base, rank, index, shape, bundled):
    """One entry of the graph caches, in turn of FxGraph and of AOTAutograd."""
    rng = random.Random(f"pk{shape.seed}/{rank}/{index}")
    name = hash52("fx", shape.seed, rank, index)[:51]
    folder = (f"fxgraph/{name[:2]}/f{name}" if index % 2 == 0 else f"aotautograd/a{name}")
    megabytes = min(12, max(0.3, rng.lognormvariate(shape.pickle_mu, 0.6)))
    inductor.write_pickle(base / "inductor_cache" / folder / hash52(name), bundled, rng, megabytes)


def add_shared_object(base, rank, index, seed, material):
    """A launcher stub (odd) or a module of the C++ wrapper (even)."""
    rng = random.Random(f"so{seed}/{rank}/{index}")
    name = hash52("so", seed, rank, index)
    folder = base / "triton_cache" / name.upper()
    folder.mkdir(parents=True)
    stub = index % 2 == 1
    file = "__triton_launcher.cpython-312-x86_64-linux-gnu.so" if stub else f"c{name[:40]}.main.so"
    (folder / file).write_bytes(material.code(rng, index * 7 + rank * 3, stub))


def add_index(root, base, shape, rank):
    """vLLM's own index of compiled graphs, and what it found out about the model."""
    rng = random.Random(f"cg{shape.seed}/{rank}")
    lines = [f"    ({i}, '{rng.choice(NAMES)}_{i}', {rng.randrange(9999)}): "
             f"('{hash52(shape.seed, rank, i)}', 'artifact_{rng.randrange(400)}')," for i in
             range(4000)]
    (base / "vllm_compile_cache.py").write_text("{\n" + "\n".join(lines) + "\n}\n")
    models = root / "vllm/modelinfos"
    models.mkdir(exist_ok=True)
    (models / f"vllm-model_executor-rank-{rank}.json").write_text(json.dumps(
        {"hash": hash52(shape.seed, rank), **{f"supports_{n}": rng.randrange(2) == 1
                                              for n in NAMES}}))


def build(root, shape, material, jobs=2):
    """Fills the empty directory `root`."""
    root = Path(root)
    for rank in range(shape.ranks):
        base = rank_folder(root, shape, rank)
        with ThreadPoolExecutor(jobs) as pool:
            made = list(pool.map(
                lambda index, base=base, rank=rank: add_kernel(base, rank, index, shape.seed,
                                                               material),
                range(shape.kernels // shape.ranks)))
        for index in range(shape.py // shape.ranks):
            add_output_code(base, rank, index, shape.seed, material)
        for index in range(shape.pickles // shape.ranks):
            add_pickle(base, rank, index, shape, made)
        for index in range(shape.so // shape.ranks):
            add_shared_object(base, rank, index, shape.seed, material)
        add_index(root, base, shape, rank)
