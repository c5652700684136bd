// SPDX-License-Identifier: Apache-2.0
// SGLang (since 2026) makes other compilers write their caches below SGLANG_CACHE_DIR unless their
// own variables are set. With every preset selected, the directory contains only SGLang's autotune
// results and kernels; with this preset alone, it contains all caches.
//
// jit/ (sglang/kernels/jit/utils/compile/cache.py): a build is staged in .staging-<uuid>/ and
// renamed to <target>/<module>/build-<key>/deps-<key>/, which never changes afterwards. A directory
// is a hit only if it has both the shared object and sgl_deps.json. cute_aot/
// (sglang/kernels/jit/cute_aot_cache.py): objects with host code, each written to a temporary file
// and renamed; its locks end with ".lock".
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind SglangKind() {
  const UnitRule build = {.components = 5};
  return {
      .name = "sglang",
      .path = "sglang",
      .env = {{"SGLANG_CACHE_DIR"},
              {"SGLANG_JIT_CACHE_DIR", "@/jit"},
              {"SGLANG_CUTE_AOT_CACHE_DIR", "@/cute_aot"}},
      .strict = {{"SGLANG_CRASH_ON_JIT_COMPILE", "1"}},
      .nested = {{"triton", "triton"},
                 {"inductor", "torchinductor"},
                 {"nv", "cuda"},
                 {"tilelang", "tilelang"},
                 {".cache/flashinfer", "flashinfer"},
                 {"deep_gemm", "deepgemm"}},
      .files = {{.glob = "flashinfer/autotune/**",
                 .writable = true,
                 .in_place = true,
                 .autotune = true,
                 .unit = {.components = 2}},
                {.glob = "jit/*/*/build-*/deps-*/*.so",
                 .role = Role::kIndex,
                 .native = true,
                 .unit = build},
                {.glob = "jit/*/*/build-*/deps-*/sgl_deps.json",
                 .role = Role::kOutput,
                 .unit = build},
                {.glob = "cute_aot/**/*.o", .role = Role::kIndex, .native = true}},
      .versions = {{.engine = "flashinfer", .glob = "flashinfer/autotune/*/**", .component = 2}},
      .directory_is_write = true,
      .facts = {.engine = "SGLang",
                .proof = "Read from the sources of September 2026; not tested with a "
                         "running engine.",
                .absolute_paths = "None: sgl_deps.json names sources relative to the packages.",
                .hit = "The *.so of a module, or the *.o of a CuTe kernel.",
                .miss = "One directory per module, renamed into place; one *.o per CuTe "
                        "kernel, renamed into place."}};
}

}  // namespace cachewarm::caches
