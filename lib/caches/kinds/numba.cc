// SPDX-License-Identifier: Apache-2.0
// Numba writes an index (.nbi) and code (.nbc) for each function and renames them into place. Its
// key contains the host CPU. The index stores the mtime of the Python source, and some versions
// compare that. No version reads the mtime of the index file itself, so bundles do not keep mtimes.
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
