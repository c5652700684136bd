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
                     .in_place = true,
                     .autotune = true,
                     .unit = {.components = 1}}},
          .facts = {.engine = "JAX",
                    .proof = "JAX 0.10.2 ran on a CPU in a cluster: every start but the builder's "
                             "was a full hit (tests/e2e/engines).",
                    .absolute_paths =
                        "None in the files. On a CPU the key contains the path of the cache "
                        "directory: use the same path everywhere.",
                    .hit = "One *-cache file per module.",
                    .miss = "The same file, in place. Compiles below one second are not written."}};
}

}  // namespace cachewarm::caches
