// SPDX-License-Identifier: Apache-2.0
// JIT cache of the CUDA driver. Its format is private, its files are updated in place, and other
// driver versions ignore them.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind CudaKind() {
  return {.name = "cuda",
          .path = "cuda",
          .env = {{"CUDA_CACHE_PATH"}},
          .nested = {},
          .files = {{.glob = "index", .writable = true, .in_place = true, .always = true},
                    {.glob = "**", .role = Role::kIndex, .writable = true, .in_place = true}}};
}

}  // namespace cachewarm::caches
