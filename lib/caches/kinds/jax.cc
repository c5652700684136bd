// SPDX-License-Identifier: Apache-2.0
// JAX persistent compilation cache (jax/_src/lru_cache.py): flat "<module>-<64 hex>-cache" files,
// written in place, never overwritten. An executable may contain host code for the CPU on which it
// was compiled.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind JaxKind() {
  return {.name = "jax",
          .path = "jax",
          .env = {{"JAX_COMPILATION_CACHE_DIR"}},
          .nested = {},
          .files = {{.glob = "*-cache", .role = Role::kIndex, .native = true, .in_place = true},
                    {.glob = "xla_gpu_per_fusion_autotune_cache_dir/**",
                     .role = Role::kOutput,
                     .writable = true,
                     .in_place = true}}};
}

}  // namespace cachewarm::caches
