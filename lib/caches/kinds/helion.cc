// SPDX-License-Identifier: Apache-2.0
// Helion (helion/autotuner/local_cache.py): one <hash>.best_config per tuned kernel, written to
// "tmp.<uuid>" and renamed. Its Triton and CuTe DSL kernels are in directories per device.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind HelionKind() {
  return {.name = "helion",
          .path = "helion",
          .env = {{"HELION_CACHE_DIR"}},
          .nested = {{"triton/*", "triton"}, {"cute/*", "cute-dsl"}},
          .files = {{.glob = "*.best_config", .role = Role::kIndex}}};
}

}  // namespace cachewarm::caches
