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
                    {.glob = "**/*.nbc", .role = Role::kIndex, .native = true, .unit = package}},
          .versions = {{.engine = "numba",
                        .glob = "**/*.nbi",
                        .place = VersionRow::Place::kPickledFirst}},
          .facts = {.engine = "Numba",
                    .proof = "Numba 0.65 ran on a CPU in a cluster: every start but the builder's "
                             "was a full hit (tests/e2e/engines).",
                    .absolute_paths = "None in the files. The directory of a module is named after "
                                      "the path of its source: a hit needs the same image.",
                    .hit = "The *.nbi file of a function, then its *.nbc files.",
                    .miss = "The same files, renamed into place."}};
}

}  // namespace cachewarm::caches
