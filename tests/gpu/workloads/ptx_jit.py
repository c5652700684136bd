# SPDX-License-Identifier: Apache-2.0
"""Loads PTX, which the CUDA driver compiles into its compute cache. The driver has no counter: a
new file in the cache is a miss, a load without one is a hit."""

import ctypes
import json
import os
import time
from pathlib import Path

# Many independent instructions, so that the driver's compiler has something to do.
BODY = "\n".join(f"fma.rn.f32 %f{i % 64}, %f{(i * 7 + 1) % 64}, %f{(i * 3 + 2) % 64}, %f{i % 64};"
                 for i in range(20_000))
PTX = f""".version 7.0
.target sm_70
.address_size 64
.visible .entry work(.param .u64 out)
{{
.reg .f32 %f<64>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [out];
{chr(10).join(f'mov.f32 %f{i}, 0f3F800000;' for i in range(64))}
{BODY}
st.global.f32 [%rd1], %f0;
ret;
}}
"""

CACHE = Path(os.environ["CUDA_CACHE_PATH"])


def files() -> int:
    return sum(1 for path in CACHE.rglob("*") if path.is_file() and path.name != "index")


def check(code: int, call: str) -> None:
    if code != 0:
        raise RuntimeError(f"{call}: CUDA error {code}")


cuda = ctypes.CDLL("libcuda.so.1")
device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
check(cuda.cuInit(0), "cuInit")
check(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
before = files()
begin = time.monotonic()
check(cuda.cuModuleLoadData(ctypes.byref(module), PTX.encode() + b"\0"), "cuModuleLoadData")
seconds = time.monotonic() - begin
new = files() - before
print(json.dumps({"counter": "new files in CUDA_CACHE_PATH", "hits": int(before > 0 and new == 0),
                  "misses": new, "seconds": seconds}))
