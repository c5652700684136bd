// SPDX-License-Identifier: Apache-2.0
// FlashInfer: ninja below <base>/.cache/flashinfer/<version>/<architectures>/. ninja compares
// nanosecond mtimes of objects, sources and its own log, and rewrites in place.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind FlashInferKind() {
  const UnitRule op = {.components = 4};
  return {.name = "flashinfer",
          .path = "flashinfer",
          .root = ".cache/flashinfer",
          .env = {{"FLASHINFER_WORKSPACE_BASE"}},
          .nested = {},
          .files = {
              {.glob = "cubins/**", .role = Role::kOutput, .writable = true, .in_place = true},
              {.glob = "*/*/generated/**",
               .role = Role::kOutput,
               .keep_mtime = true,
               .writable = true,
               .in_place = true,
               .always = true},
              {.glob = "*/*/cached_ops/*/*.so",
               .role = Role::kIndex,
               .native = true,
               .keep_mtime = true,
               .writable = true,
               .in_place = true,
               .unit = op},
              {.glob = "*/*/cached_ops/*/*",
               .role = Role::kOutput,
               .native = true,
               .keep_mtime = true,
               .writable = true,
               .in_place = true,
               .unit = op},
          }};
}

}  // namespace cachewarm::caches
