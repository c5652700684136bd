// SPDX-License-Identifier: Apache-2.0
// Smaller caches of Python kernel compilers.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

// Flat "<hash>.cubin" files, renamed into place (cupy/cuda/compiler.py).
CacheKind CupyKind() {
  return {.name = "cupy",
          .path = "cupy",
          .env = {{"CUPY_CACHE_DIR"}},
          .nested = {},
          .files = {{.glob = "*.cubin", .role = Role::kIndex},
                    {.glob = "*.hsaco", .role = Role::kIndex}}};
}

// CUTLASS CuTe DSL: MLIR modules.
CacheKind CuteDslKind() {
  return {.name = "cute-dsl",
          .path = "cute_dsl",
          .env = {{"CUTE_DSL_CACHE_DIR"}},
          .nested = {},
          .files = {{.glob = "**", .role = Role::kIndex, .writable = true, .in_place = true}}};
}

// TVM FFI inline modules: built by ninja below one directory each.
CacheKind TvmFfiKind() {
  return {.name = "tvm-ffi",
          .path = "tvm_ffi",
          .env = {{"TVM_FFI_CACHE_DIR"}},
          .nested = {},
          .files = NinjaRows("**/*.so", "*/**", {.components = 1})};
}

// Index (.nbi) and code (.nbc) of one function, renamed into place; the key holds the host CPU. The
// index of some versions compares the source's mtime, never its own.
CacheKind NumbaKind() {
  return {
      .name = "numba",
      .path = "numba",
      .env = {{"NUMBA_CACHE_DIR"}},
      .nested = {},
      .files = {
          {.glob = "**/*.nbi", .role = Role::kOutput, .native = true, .unit = {.components = 1}},
          {.glob = "**/*.nbc", .role = Role::kIndex, .native = true, .unit = {.components = 1}}}};
}

}  // namespace cachewarm::caches
