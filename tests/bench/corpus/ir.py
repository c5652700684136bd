# SPDX-License-Identifier: Apache-2.0
"""The files beside a Triton cubin: MLIR and LLVM text of the same operations, and metadata."""
import hashlib
import json

from .kernels import source_path

BLOCKED = ("#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], "
           "warpsPerCTA = [4], order = [0]}>")
GPU_MODULE = ('module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, '
              'ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {')
BINARY = {"add": "arith.addf", "mul": "arith.mulf", "sub": "arith.subf", "max": "arith.maxnumf",
          "min": "arith.minnumf"}
UNARY = {"ex2": "math.exp2", "rsqrt": "math.rsqrt", "lg2": "math.log2"}
LAYOUT = ("e-p3:32:32-p4:32:32-p5:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64")
METADATA = {
    "target": {"backend": "cuda", "arch": 90, "warp_size": 32}, "num_warps": 4, "num_ctas": 1,
    "warp_size": 32, "maxnreg": None, "cluster_dims": [1, 1, 1], "ptx_version": None,
    "ptx_options": None, "ir_override": None, "enable_fp_fusion": True,
    "launch_cooperative_grid": False, "launch_pdl": False,
    "supported_fp8_dtypes": ["fp8e4b15", "fp8e4nv", "fp8e5"],
    "deprecated_fp8_dot_operand_dtypes": ["fp8e4b15"], "default_dot_input_precision": "tf32",
    "allowed_dot_input_precisions": ["tf32", "tf32x3", "ieee"],
    "max_num_imprecise_acc_default": 1073741824,
    "extern_libs": [["libdevice", "/usr/local/lib/python3.12/dist-packages/triton/backends/nvidia"
                     "/lib/libdevice.10.bc"]],
    "debug": False, "backend_name": "cuda", "sanitize_overflow": False, "arch": "sm90",
    "instrumentation_mode": "", "triton_version": "3.5.0", "tensordesc_meta": [], "tmem_size": 0,
    "global_scratch_size": 0, "global_scratch_align": 1, "profile_scratch_size": 0,
    "profile_scratch_align": 1}


def metadata_of(name, rng, cubin_bytes):
    """The kernel's .json."""
    return json.dumps({"hash": hashlib.sha256(name.encode()).hexdigest(), **METADATA,
                       "num_stages": rng.randrange(1, 6), "shared": rng.randrange(0, 232448, 16),
                       "name": name, "cubin_size": cubin_bytes})


def mlir_line(number, operation, blocked):
    """One operation in the tt and arith dialects; `blocked` is the layout that ttgir adds."""
    place = f"loc(#loc{number % 97 + 1})"
    kind = f"tensor<128xf32{blocked}>"
    pointer = f"tensor<128x!tt.ptr<f32>{blocked}>"
    name, first, second, *rest = operation
    if name == "ld":
        return (f"    %ptr_{number} = tt.addptr %splat{second}, %xindex : {pointer}, "
                f"tensor<128xi32{blocked}> {place}\n    %tmp{first} = tt.load %ptr_{number}, "
                f"%xmask evictionPolicy = evict_last : {pointer} {place}")
    if name == "st":
        return f"    tt.store %ptr_out{second}, %tmp{first}, %xmask : {pointer} {place}"
    if name == "fma":
        return (f"    %tmp{first} = math.fma %tmp{second}, %tmp{rest[0]}, %tmp{rest[1]} : "
                f"{kind} {place}")
    if name == "selp":
        return (f"    %tmp{first} = arith.select %xmask, %tmp{second}, %tmp{rest[0]} : "
                f"tensor<128xi1{blocked}>, {kind} {place}")
    if name == "shfl":
        return (f'    %tmp{first} = "tt.reduce"(%tmp{second}) <{{axis = 0 : i32}}> ({{^bb0(%a: f32 '
                f"{place}, %b: f32 {place}): %s = arith.addf %a, %b : f32 {place} "
                f"tt.reduce.return %s : f32 {place} }}) : ({kind}) -> f32 {place}")
    if name in UNARY:
        return f"    %tmp{first} = {UNARY[name]} %tmp{second} : {kind} {place}"
    return f"    %tmp{first} = {BINARY[name]} %tmp{second}, %tmp{rest[0]} : {kind} {place}"


def ttir_of(name, operations, gpu):
    """.ttir, or .ttgir with the layouts of a GPU."""
    path = source_path(name)
    lines = [BLOCKED] if gpu else []
    lines += [f'#loc = loc("{path}":18:0)', GPU_MODULE if gpu else "module {"]
    place = f'{{tt.divisibility = 16 : i32}} loc("{path}":18:0)'
    pointers = ", ".join(f"%in_ptr{i}: !tt.ptr<f32> {place}" for i in range(4))
    lines.append(f"  tt.func public @{name}({pointers}, %xnumel: i32 {place}) "
                 "attributes {noinline = false} {")
    blocked = ", #blocked" if gpu else ""
    lines += [mlir_line(number, operation, blocked) for number, operation in enumerate(operations)]
    lines += ["    tt.return loc(#loc1)", "  } loc(#loc)", "} loc(#loc)"]
    lines += [f'#loc{i + 1} = loc("{path}":{22 + i}:{(i * 7) % 50 + 10})'
              for i in range(min(97, len(operations)))]
    return "\n".join(lines) + "\n"


def llvm_line(number, operation):
    """One operation as LLVM text."""
    debug = f"!dbg !{number % 211 + 8}"
    name, first, second, *rest = operation
    if name == "ld":
        return (f'  %v{first}.i = tail call i32 asm sideeffect "mov.u32 $0, 0x0;\\0A\\09@$2 '
                'ld.global.b32 { $0 }, [ $1 + 0 ];", "=r,l,b"(ptr addrspace(1) '
                f"%p{second}, i1 %m) #3, {debug}\n"
                f"  %v{first} = bitcast i32 %v{first}.i to float, {debug}")
    if name == "st":
        return ('  tail call void asm sideeffect "@$2 st.global.b32 [ $1 + 0 ], { $0 };", '
                f'"r,l,b"(i32 %v{first}.i, ptr addrspace(1) %p{second}, i1 %m) #3, {debug}')
    if name in ("add", "mul", "sub"):
        return f"  %v{first} = f{name} float %v{second}, %v{rest[0]}, {debug}"
    return (f"  %v{first} = tail call float @llvm.nvvm.{name}.approx.f(float %v{second}, "
            f"float %v{rest[0]}), {debug}")


def llir_of(name, operations):
    """.llir."""
    pointers = ", ".join(f"ptr addrspace(1) %{i}" for i in range(4))
    lines = ["; ModuleID = 'LLVMDialectModule'", 'source_filename = "LLVMDialectModule"',
             f'target datalayout = "{LAYOUT}"', "",
             f"define ptx_kernel void @{name}({pointers}, i32 %4) local_unnamed_addr #0 !dbg !5 {{",
             "  %6 = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x(), !dbg !8",
             "  %7 = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg !9"]
    lines += [llvm_line(number, operation) for number, operation in enumerate(operations)]
    lines += ["  ret void, !dbg !7", "}", ""]
    lines += [f"!{i + 8} = !DILocation(line: {22 + i}, column: {(i * 7) % 50 + 10}, scope: !5)"
              for i in range(min(211, len(operations)))]
    return "\n".join(lines) + "\n"
