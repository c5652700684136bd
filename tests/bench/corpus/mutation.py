# SPDX-License-Identifier: Apache-2.0
"""The second version of a corpus, after an upgrade: a fraction of it is compiled again."""
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import inductor
from .tree import add_kernel, rank_folder


def mutate(source, target, shape, material, fraction=0.05, jobs=2):
    """Copies `source` to `target`. Of the copy, `fraction` of the kernels are gone and as many new
    ones there under other hashes, `fraction` of the output code is edited, and `fraction` of the
    pickles made again, half of old kernels and half of new; shared objects stay."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    for rank in range(shape.ranks):
        base = rank_folder(Path(target), shape, rank)
        rng = random.Random(f"mutation{shape.seed}/{rank}")
        new = replace_kernels(base, rank, rng, shape, material, fraction, jobs)
        codes = sorted(base.glob("inductor_cache/*/c*.py"))
        for path in rng.sample(codes, int(len(codes) * fraction)):
            path.write_text(path.read_text().replace("131072", "262144") +
                            f"\n# revision {rng.getrandbits(64):x}\n")
        remake_pickles(base, rng, new, fraction)


def kernels_of(base):
    """(directory, kernel's name) of every kernel, sorted."""
    return sorted((cubin.parent, cubin.stem) for cubin in base.glob("triton_cache/*/*.cubin"))


def replace_kernels(base, rank, rng, shape, material, fraction, jobs):
    """Returns the new ones."""
    present = kernels_of(base)
    count = max(1, int(len(present) * fraction))
    for folder, _ in rng.sample(present, count):
        shutil.rmtree(folder)
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda index: add_kernel(base, rank, 1000000 + index,
                                                      f"{shape.seed}m", material), range(count)))


def remake_pickles(base, rng, new, fraction):
    """The same graph compiled again: most of its kernels are the same, a few are new."""
    pickles = sorted([*base.glob("inductor_cache/fxgraph/*/*/*"),
                      *base.glob("inductor_cache/aotautograd/*/*")])
    present = kernels_of(base)
    for path in rng.sample(pickles, max(1, int(len(pickles) * fraction))):
        chosen = rng.sample(present, min(40, len(present))) + new[:3]
        inductor.write_pickle(path, chosen, rng, max(0.3, path.stat().st_size / 1e6))
