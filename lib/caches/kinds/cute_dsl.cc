// SPDX-License-Identifier: Apache-2.0
// CUTLASS CuTe DSL caches compiled MLIR modules.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind CuteDslKind() {
  return {.name = "cute-dsl",
          .path = "cute_dsl",
          .env = {{"CUTE_DSL_CACHE_DIR"}},
          .nested = {},
          .files = {{.glob = "**", .role = Role::kIndex, .writable = true, .in_place = true}}};
}

}  // namespace cachewarm::caches
