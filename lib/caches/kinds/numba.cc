// SPDX-License-Identifier: Apache-2.0
// Numba: index (.nbi) and code (.nbc) of one function, renamed into place. The key holds the host
// CPU. Some versions compare the mtime of the Python source in the index; none reads the index's
// own mtime.
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
