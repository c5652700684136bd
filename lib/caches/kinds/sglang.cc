// SPDX-License-Identifier: Apache-2.0
// SGLang (since 2026): SGLANG_CACHE_DIR is where it points the caches of others by setdefault, so
// with every preset on only its autotune results lie here; with this preset alone, all of them.
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
