// SPDX-License-Identifier: Apache-2.0
// JIT cache of the CUDA driver. Its format is private, so every file is allowed. The driver updates
// the files in place, and ignores files of other driver versions.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind CudaKind() {
  return {.name = "cuda",
          .path = "cuda",
          .env = {{"CUDA_CACHE_PATH"}},
          .nested = {},
          .files = {{.glob = "index", .writable = true, .in_place = true, .always = true},
                    {.glob = "**", .role = Role::kIndex, .writable = true, .in_place = true}},
          .facts = {.engine = "CUDA driver (PTX JIT)",
                    .proof = "The format is private; only the directory is known. Not tested with "
                             "a running engine.",
                    .absolute_paths = "Unknown. The driver ignores files of other driver versions.",
                    .hit = "index and one file per module.",
                    .miss = "The same files, in place."}};
}

}  // namespace cachewarm::caches
