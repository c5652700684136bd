// SPDX-License-Identifier: Apache-2.0
// The CUDA driver's JIT cache: private format, updated in place, ignored by other driver versions.
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
