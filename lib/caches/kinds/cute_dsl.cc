// SPDX-License-Identifier: Apache-2.0
// CUTLASS CuTe DSL caches compiled MLIR modules.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind CuteDslKind() {
  return {.name = "cute-dsl",
          .path = "cute_dsl",
          .env = {{"CUTE_DSL_CACHE_DIR"}},
          .nested = {},
          .files = {{.glob = "**", .role = Role::kIndex, .writable = true, .in_place = true}},
          .facts = {
              .engine = "CUTLASS CuTe DSL",
              .proof = "Only the directory is known; not tested with a running engine. "
                       "cute.compile writes nothing there (cutlass#3398).",
              .absolute_paths =
                  "None known in the files. The key contains the paths of the cache directory and "
                  "of the working directory.",
              .hit = "One file per module.",
              .miss = "The same file, in place."}};
}

}  // namespace cachewarm::caches
