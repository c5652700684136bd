// SPDX-License-Identifier: Apache-2.0
// TileLang stages each kernel in .staging/ and renames it to
// <version>/<platform>/kernels/<sha256>/.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind TileLangKind() {
  const UnitRule kernel = {.components = 4};
  return {.name = "tilelang",
          .path = "tilelang",
          .env = {{"TILELANG_CACHE_DIR"}},
          .nested = {},
          .files = {{.glob = "*/*/kernels/*/params.pkl", .role = Role::kIndex, .unit = kernel},
                    {.glob = "*/*/kernels/*/*.so",
                     .role = Role::kOutput,
                     .native = true,
                     .unit = kernel},
                    {.glob = "*/*/kernels/*/*", .role = Role::kOutput, .unit = kernel},
                    {.glob = "*/*/autotuner/**",
                     .writable = true,
                     .in_place = true,
                     .autotune = true,
                     .unit = {.components = 3}}},
          .versions = {{.engine = "tilelang", .glob = "*/*/kernels/**"}},
          .directory_is_write = true,
          .facts = {.engine = "TileLang",
                    .proof = "Read from the sources of August 2026; not tested with a "
                             "running engine.",
                    .absolute_paths = "None known.",
                    .hit = "params.pkl and the library of the kernel.",
                    .miss = "One directory per kernel, renamed into place."}};
}

}  // namespace cachewarm::caches
