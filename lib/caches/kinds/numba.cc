// SPDX-License-Identifier: Apache-2.0
// Numba writes an index (.nbi) and code (.nbc) for each function and renames them into place. Its
// key contains the host CPU. Some versions compare the mtime of the Python source, which the index
// stores. No version reads the mtime of the index file, so bundles do not keep it.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind NumbaKind() {
  const UnitRule package = {.components = 1};
  return {.name = "numba",
          .path = "numba",
          .env = {{"NUMBA_CACHE_DIR"}},
          .nested = {},
          .files = {{.glob = "**/*.nbi", .role = Role::kOutput, .native = true, .unit = package},
                    {.glob = "**/*.nbc", .role = Role::kIndex, .native = true, .unit = package}}};
}

}  // namespace cachewarm::caches
