# SPDX-License-Identifier: Apache-2.0
"""Compiles a Triton kernel; Triton's compilation listener reports whether its cache had it."""

import json
import time

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


counted = {"hits": 0, "misses": 0}


def listener(*, cache_hit, **_):
    counted["hits" if cache_hit else "misses"] += 1


triton.knobs.compilation.listener = listener
x = torch.ones(4096, device="cuda")
out = torch.empty_like(x)
begin = time.monotonic()
add[(triton.cdiv(4096, 256),)](x, x, out, 4096, BLOCK=256)
torch.cuda.synchronize()
seconds = time.monotonic() - begin
assert out.eq(2).all(), "the kernel computes a wrong sum"
print(json.dumps({"counter": "cache_hit of the compilation listener", "seconds": seconds,
                  **counted}))
