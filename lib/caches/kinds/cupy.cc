// SPDX-License-Identifier: Apache-2.0
// CuPy (cupy/cuda/compiler.py) writes flat "<hash>.cubin" files and renames them into place.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind CupyKind() {
  return {.name = "cupy",
          .path = "cupy",
          .env = {{"CUPY_CACHE_DIR"}},
          .nested = {},
          .files = {{.glob = "*.cubin", .role = Role::kIndex},
                    {.glob = "*.hsaco", .role = Role::kIndex}},
          .facts = {.engine = "CuPy",
                    .proof = "Read from the sources of mid 2026; not tested with a running engine.",
                    .absolute_paths = "None.",
                    .hit = "One *.cubin or *.hsaco file per module.",
                    .miss = "The same file, renamed into place."}};
}

}  // namespace cachewarm::caches
