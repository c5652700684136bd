# SPDX-License-Identifier: Apache-2.0
"""One process of torch on CPU: loads an artifact, compiles two functions, saves an artifact.

Usage: torch_process.py RESULT [--load FILE] [--save FILE] [--extra]

Writes a JSON object to RESULT: torch's own counters, the types and keys of the artifacts, the files
after --load, and the kernels (*.main.so) that this process built. --extra records an autotune
result and a precompiled function, which this workload does not have on CPU.
"""
import argparse
import json
import os
from pathlib import Path

import torch
from torch._dynamo.utils import counters
from torch.compiler._cache import CacheArtifactManager

DIRECTORY = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
EXTRA = {"autotune": (f"ab/{'0c' * 32}.best_config", {"num_warps": 4, "time_taken_ms": 1}),
         "precompile": ("0a" * 32, b"a precompiled function")}


def objects():
    return {(str(path), path.stat().st_ino) for path in DIRECTORY.rglob("*.main.so")}


def is_entry(path):
    top = path.relative_to(DIRECTORY).parts[0]
    return path.is_file() and top in ("fxgraph", "aotautograd", "dynamo", "ab") and \
        path.suffix in ("", ".pkl", ".best_config")


def listing():
    return {str(path.relative_to(DIRECTORY)): path.read_bytes().hex()
            for path in DIRECTORY.rglob("*") if is_entry(path)}


def compiled_functions():
    """A function of one shape, and one whose second shape compiles a second graph."""
    def normalized(x):
        return torch.nn.functional.layer_norm(torch.relu(x), (32,)).softmax(-1)

    def summed(x):
        return (x * 2).sin().sum(0)

    return ((torch.compile(normalized), normalized, (4,)),
            (torch.compile(summed), summed, (3, 5)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("result")
    parser.add_argument("--load")
    parser.add_argument("--save")
    parser.add_argument("--extra", action="store_true")
    arguments = parser.parse_args()
    result = {}
    if arguments.load:
        info = torch.compiler.load_cache_artifacts(Path(arguments.load).read_bytes())
        result["loaded"] = dict(info.artifacts) if info is not None else None
        result["files"] = listing()
    before = objects()
    difference = 0.0
    for function, eager, sizes in compiled_functions():
        for size in sizes:
            x = torch.linspace(-1, 1, size * 32).reshape(size, 32)
            difference = max(difference, float((function(x) - eager(x)).abs().max()))
    result["difference"] = difference
    result["built"] = len(objects() - before)
    result["inductor"] = dict(counters["inductor"])
    result["aot_autograd"] = dict(counters["aot_autograd"])
    if arguments.extra:
        for kind, (key, content) in EXTRA.items():
            CacheArtifactManager.record_artifact(kind, key, content)
    if arguments.save:
        data, info = torch.compiler.save_cache_artifacts()
        Path(arguments.save).write_bytes(data)
        result["saved"] = dict(info.artifacts)
    Path(arguments.result).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
