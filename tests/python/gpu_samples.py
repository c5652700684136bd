# SPDX-License-Identifier: Apache-2.0
"""Writes caches with GPU code of real compilers, on a machine without a GPU.

Usage: gpu_samples.py DIRECTORY LIBNVFATBIN. Runs in the environment of torch, whose packages have
ptxas (in Triton) and NVRTC. Each directory below DIRECTORY is a cache directory:
  triton-NN     what Triton writes for a kernel and the target sm_NN
  nvrtc-SUFFIX  a cubin of NVRTC as DeepGEMM keeps it
  ptxas-SUFFIX  a cubin of ptxas as Inductor keeps it
  fat, fat-compressed, fat-ptx  fat binaries: a file, and an object that nvcc would link
"""
import ctypes
import importlib.util
import os
import subprocess
import sys
import warnings
from pathlib import Path

TRITON = (80, 89, 90, 100, 120)
SUFFIXES = ("80", "89", "90a", "100", "120")
SOURCE = b'extern "C" __global__ void fill(int *out) { out[threadIdx.x] = threadIdx.x; }'
PTX = """.version {version}
.target sm_{target}
.address_size 64
.visible .entry fill(.param .u64 out) {{
  .reg .b64 %rd<3>; .reg .b32 %r<2>;
  ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd2, %rd1; mov.u32 %r1, %tid.x;
  st.global.u32 [%rd2], %r1; ret;
}}
"""


def package(name):
    return Path(importlib.util.find_spec(name).submodule_search_locations[0])


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def compile_with_triton(root):
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(Path(__file__).parent))
    import triton_kernel
    for target in TRITON:
        triton_kernel.compile_for(target, root / f"triton-{target}/triton")


def nvrtc_cubin(suffix):
    library = ctypes.CDLL(str(package("nvidia.cu13") / "lib/libnvrtc.so.13"))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    check(library.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"fill.cu", 0, None, None))
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{suffix}".encode())
    check(library.nvrtcCompileProgram(program, 1, options))
    check(library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    cubin = ctypes.create_string_buffer(size.value)
    check(library.nvrtcGetCUBIN(program, cubin))
    return cubin.raw


def check(code):
    assert code == 0, f"error {code} of NVRTC or nvFatbin"


def ptx(suffix):
    return PTX.format(target=suffix, version="8.7" if int(suffix.rstrip("af")) >= 100 else "8.0")


def ptxas_cubin(suffix, folder):
    """Of Triton's two versions of ptxas: 12.9 for the older GPUs, 13 for Blackwell."""
    name = "ptxas-blackwell" if int(suffix.rstrip("af")) >= 100 else "ptxas"
    source, cubin = folder / "fill.ptx", folder / "fill.cubin"
    source.write_text(ptx(suffix))
    subprocess.run([str(package("triton") / "backends/nvidia/bin" / name), f"-arch=sm_{suffix}",
                    str(source), "-o", str(cubin)], check=True)
    return cubin.read_bytes()


def fat_binary(library, options, cubins, ptx_suffixes):
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    check(library.nvFatbinCreate(ctypes.byref(handle), words, ctypes.c_size_t(len(options))))
    for suffix in cubins:
        cubin = nvrtc_cubin(suffix)
        check(library.nvFatbinAddCubin(handle, cubin, ctypes.c_size_t(len(cubin)),
                                       suffix.encode(), b"fill"))
    for suffix in ptx_suffixes:
        text = ptx(suffix).encode() + b"\0"
        check(library.nvFatbinAddPTX(handle, text, ctypes.c_size_t(len(text)), suffix.encode(),
                                     b"fill", None))
    check(library.nvFatbinSize(handle, ctypes.byref(size)))
    binary = ctypes.create_string_buffer(size.value)
    check(library.nvFatbinGet(handle, binary))
    return binary.raw


def write_fat_binary(root, binary):
    """The binary itself, and in the section of a host object that nvcc gives it."""
    extension = root / "torch_extensions/fill"
    write(extension / "fill.fatbin", binary)
    (extension / "fill.cpp").write_text("int fill() { return 1; }\n")
    subprocess.run(["c++", "-c", "fill.cpp", "-o", "fill.o"], cwd=extension, check=True)
    subprocess.run(["objcopy", "--add-section", ".nv_fatbin=fill.fatbin", "--set-section-flags",
                    ".nv_fatbin=alloc,readonly", "fill.o"], cwd=extension, check=True)
    subprocess.run(["c++", "-shared", "fill.o", "-o", "fill.so"], cwd=extension, check=True)


def main():
    root, library = Path(sys.argv[1]), ctypes.CDLL(sys.argv[2])
    compile_with_triton(root)
    for suffix in SUFFIXES:
        write(root / f"nvrtc-{suffix}/deepgemm/cache/kernel.fill.0/kernel.cubin",
              nvrtc_cubin(suffix))
        write(root / f"ptxas-{suffix}/inductor/ab/cfill.cubin", ptxas_cubin(suffix, root))
    write_fat_binary(root / "fat",
                     fat_binary(library, ["-64"], ("80", "90a", "100", "120"), ("90",)))
    write_fat_binary(root / "fat-compressed",
                     fat_binary(library, ["-64", "-compress-all"], ("89", "90a"), ()))
    write_fat_binary(root / "fat-ptx", fat_binary(library, ["-64"], (), ("90a",)))


if __name__ == "__main__":
    os.environ.setdefault("HOME", "/nonexistent")
    main()
