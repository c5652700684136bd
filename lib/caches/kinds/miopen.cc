// SPDX-License-Identifier: Apache-2.0
// MIOpen (src/binary_cache.cpp): SQLite databases of kernels (.ukdb) and of tuning results (.udb),
// text files of tuning results, and, where MIOpen was built without SQLite, kernels in
// <md5>/<name>.o. Opt-in, because files are not captured while MIOpen has a database open for
// writing.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind MiopenKind() {
  return {.name = "miopen",
          .path = "miopen",
          .env = {{"MIOPEN_CUSTOM_CACHE_DIR"}, {"MIOPEN_USER_DB_PATH"}},
          .nested = {},
          .files = {{.glob = "*.ukdb", .role = Role::kIndex, .writable = true, .in_place = true},
                    {.glob = "*.udb", .writable = true, .in_place = true, .autotune = true},
                    {.glob = "*.updb.txt", .writable = true, .in_place = true, .autotune = true},
                    {.glob = "*.ufdb.txt", .writable = true, .in_place = true, .autotune = true},
                    {.glob = "*/*.o", .role = Role::kIndex}},
          .opt_in = "Files are not captured while MIOpen has a database open for writing.",
          .facts = {.engine = "MIOpen (ROCm)",
                    .proof = "Read from the sources of MIOpen 3 (src/binary_cache.cpp); not tested "
                             "with a running engine.",
                    .absolute_paths = "None known.",
                    .hit = "A row of the database *.ukdb, or *.o where MIOpen has no SQLite.",
                    .miss = "The same files; databases in place."}};
}

}  // namespace cachewarm::caches
