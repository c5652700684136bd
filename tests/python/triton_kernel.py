# SPDX-License-Identifier: Apache-2.0
"""A kernel of Triton, compiled for a GPU that need not be there.

Usage: triton_kernel.py CACHE TARGET. Compiles for sm_TARGET and prints how many files of CACHE it
wrote: 0 if Triton found every file of the kernel there.
"""
import os
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


def compile_for(target, cache):
    os.environ["TRITON_CACHE_DIR"] = str(cache)
    source = ASTSource(fn=add, signature={"x": "*fp32", "y": "*fp32", "n": "i32",
                                          "BLOCK": "constexpr"}, constexprs={(3,): 128})
    triton.compile(source, target=GPUTarget("cuda", target, 32))


def state(cache):
    return {(str(path), path.stat().st_ino) for path in Path(cache).rglob("*") if path.is_file()}


if __name__ == "__main__":
    before = state(sys.argv[1])
    compile_for(int(sys.argv[2]), sys.argv[1])
    print(len(state(sys.argv[1]) - before))
