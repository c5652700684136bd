# SPDX-License-Identifier: Apache-2.0
"""The files that Inductor writes: output code, and the pickles of its graph caches."""
import hashlib
import pickle

from .kernels import NAMES, source_path

HEAD = """# AOT ID: ['{variant}_inference']
from ctypes import c_void_p, c_long, c_int
import torch
import math
import random
import os
import tempfile
from math import inf, nan
from cmath import nanj
from torch._inductor.hooks import run_intermediate_hooks
from torch._inductor.utils import maybe_profile
from torch._inductor.codegen.memory_planning import _align as align
from torch import device, empty_strided
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.select_algorithm import extern_kernels
import triton
import triton.language as tl
from torch._inductor.runtime.triton_heuristics import start_graph, end_graph
from torch._C import _cuda_getCurrentRawStream as get_raw_stream

aten = torch.ops.aten
inductor_ops = torch.ops.inductor
assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor
async_compile = AsyncCompile()

# kernel path: {path}
# Topologically Sorted Source Nodes: [{nodes}], Original ATen: [{aten}]
# Source node to ATen node mapping:
"""
KERNEL = """{name} = async_compile.triton('{name}', '''
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
from torch._inductor.runtime.hints import AutotuneHint, ReductionHint, TileHint, DeviceProperties
triton_helpers.set_driver_to_gpu()

@triton_heuristics.pointwise(
    size_hints={{'x': {size}}},
    filename=__file__,
    triton_meta={{'signature': {{'in_ptr0': '*bf16', 'in_ptr1': '*bf16', 'in_ptr2': '*bf16', \
'out_ptr0': '*bf16', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}}, 'device': DeviceProperties(\
type='cuda', index=0, multi_processor_count=132, cc=90, major=9, regs_per_multiprocessor=65536, \
max_threads_per_multi_processor=2048, warp_size=32), 'constants': {{}}, 'configs': [{{(0,): \
[['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]]}}]}},
    inductor_meta={{'grid_type': 'Grid1D', 'autotune_hints': set(), 'kernel_name': '{name}', \
'mutated_arg_names': [], 'optimize_mem': True, 'no_x_dim': False, 'num_load': {loads}, \
'num_reduction': 0, 'backend_hash': '{backend}', 'are_deterministic_algorithms_enabled': False}},
    min_elem_per_thread=0
)
@triton.jit
def {name}(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = (xindex % {modulus})
"""
CALL = """''', device_str='cuda')

async_compile.wait(globals())
del async_compile

def call(args):
    arg0_1, arg1_1, arg2_1, arg3_1 = args
    args.clear()
"""
BUNDLED = ("cubin", "json", "ttir", "ttgir", "llir", "ptx")


def body_line(operation):
    """One operation in Triton's Python."""
    name, first, second, *rest = operation
    if name == "ld":
        return (f"    tmp{first} = tl.load(in_ptr{second} + ({rest[0]} + x0), xmask, "
                "eviction_policy='evict_last').to(tl.float32)")
    if name == "st":
        return f"    tl.store(out_ptr{second} + ({rest[0]} + x0), tmp{first}, xmask)"
    sign = {"add": "+", "mul": "*", "sub": "-"}.get(name)
    if sign:
        return f"    tmp{first} = tmp{second} {sign} tmp{rest[0]}"
    return f"    tmp{first} = triton_helpers.{name}(tmp{second}, tmp{rest[0]})"


def graph_comment(nodes, rng):
    """The comment that Inductor puts above each kernel."""
    lines = [f"#   {n} => {n}_{rng.randrange(900)}, {n}_{rng.randrange(900)}\n" for n in nodes]
    lines.append("# Graph fragment:\n")
    for n in nodes * 2:
        lines.append(f"#   %{n}_{rng.randrange(900)} : [num_users={rng.randrange(1, 5)}] = "
                     f"call_function[target=torch.ops.aten.{n}.Tensor](args = "
                     f"(%arg{rng.randrange(40)}_1, %{rng.choice(nodes)}_{rng.randrange(900)}), "
                     "kwargs = {})\n")
    return "".join(lines)


def call_of(name, rng):
    """The wrapper that allocates and launches."""
    lines = [CALL]
    for i in range(4):
        lines.append(f"    assert_size_stride(arg{i}_1, ({rng.randrange(1, 65536)}, "
                     f"{rng.randrange(1, 16384)}), ({rng.randrange(1, 16384)}, 1))\n")
    lines.append("    with torch.cuda._DeviceGuard(0):\n        torch.cuda.set_device(0)\n")
    for i in range(rng.randrange(1, 6)):
        lines.append(f"        buf{i} = empty_strided_cuda((s0, {rng.randrange(1, 16384)}), "
                     f"({rng.randrange(1, 16384)}, 1), torch.bfloat16)\n"
                     "        stream0 = get_raw_stream(0)\n"
                     f"        {name}.run(arg0_1, arg1_1, arg2_1, buf{i}, "
                     f"{rng.randrange(1, 1 << 20)}, stream=stream0)\n")
    return "".join(lines) + "    return (buf0, )\n"


def output_code(name, operations, rng, variant):
    """c<hash>.py: one Triton kernel and call()."""
    nodes = [rng.choice(NAMES) for _ in range(rng.randrange(2, 7))]
    head = HEAD.format(variant=variant, path=source_path(name), nodes=", ".join(nodes),
                       aten=", ".join("aten." + n for n in nodes))
    kernel = KERNEL.format(name=name, size=2 ** rng.randrange(8, 24), loads=rng.randrange(1, 9),
                           backend=hashlib.sha256(b"backend").hexdigest().upper(),
                           modulus=rng.randrange(64, 8192))
    body = "\n".join(body_line(operation) for operation in operations[:160])
    return head + graph_comment(nodes, rng) + kernel + body + "\n" + call_of(name, rng)


def graph_texts(rng):
    """Guards and the printed graph, as strings within a pickle."""
    guards = [f"L['self']._modules['layers']._modules['{rng.randrange(80)}']"
              f"._buffers['{rng.choice(NAMES)}'].size()[{rng.randrange(3)}] == "
              f"{rng.randrange(1, 65536)}" for _ in range(rng.randrange(200, 3000))]
    graph = "\n".join(
        f"%{rng.choice(NAMES)}_{i} : [num_users={rng.randrange(1, 4)}] = "
        f"call_function[target=torch.ops.aten.{rng.choice(NAMES)}.default](args = "
        f"(%arg{rng.randrange(200)}_1, [s{rng.randrange(9)}, {rng.randrange(8192)}]), "
        "kwargs = {})"
        for i in range(rng.randrange(300, 4000)))
    return guards, graph


def write_pickle(path, kernels, rng, megabytes):
    """A graph cache entry that holds its kernels' files, as FxGraphCache does with Triton."""
    guards, graph = graph_texts(rng)
    bundle, source, size = [], "", 0
    kernels = list(kernels)
    rng.shuffle(kernels)
    for folder, name in kernels:
        if size > megabytes * 1e6:
            break
        artifacts = [(f"{name}.{e}", (folder / f"{name}.{e}").read_bytes()) for e in BUNDLED]
        bundle.append({"kernel_hash": folder.name, "device": 0, "artifacts": artifacts})
        text = (folder / f"{name}.source").read_text()
        source += text
        size += len(text) + sum(len(content) for _, content in artifacts)
    # Constants and tensor metadata: not text, and half compressible.
    numbers = [rng.getrandbits(64) & ((1 << rng.choice((8, 16, 32, 64))) - 1)
               for _ in range(int(size * 0.02))]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        pickle.dump({"source_code": source, "fx_graph": graph, "guards": guards,
                     "triton_bundle": bundle, "consts": numbers, "cache_key": path.name},
                    out, protocol=4)
