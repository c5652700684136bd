// SPDX-License-Identifier: Apache-2.0
// SGLang (since 2026) makes other compilers write their caches below SGLANG_CACHE_DIR unless their
// own variables are set. With every preset selected, the directory contains only SGLang's autotune
// results; with this preset alone, it contains all caches.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind SglangKind() {
  return {.name = "sglang",
          .path = "sglang",
          .env = {{"SGLANG_CACHE_DIR"}},
          .nested = {{"triton", "triton"},
                     {"inductor", "torchinductor"},
                     {"nv", "cuda"},
                     {"tilelang", "tilelang"},
                     {".cache/flashinfer", "flashinfer"},
                     {"deep_gemm", "deepgemm"}},
          .files = {{.glob = "flashinfer/autotune/**", .writable = true, .in_place = true}}};
}

}  // namespace cachewarm::caches
