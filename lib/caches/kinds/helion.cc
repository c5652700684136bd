// SPDX-License-Identifier: Apache-2.0
// Helion (helion/autotuner/local_cache.py): one <hash>.best_config per tuned kernel, written to
// "tmp.<uuid>" and renamed. Its Triton and CuTe DSL kernels are in one directory per device.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind HelionKind() {
  return {
      .name = "helion",
      .path = "helion",
      .env = {{"HELION_CACHE_DIR"}},
      .nested = {{"triton/*", "triton"}, {"cute/*", "cute-dsl"}},
      .files = {{.glob = "*.best_config", .role = Role::kIndex, .autotune = true}},
      .facts = {.engine = "Helion",
                .proof = "Read from the sources of 2026 (helion/autotuner/local_cache.py); not "
                         "tested with a running engine.",
                .absolute_paths = "See triton and cute-dsl.",
                .hit = "One *.best_config per kernel, then the kernels below triton/ and cute/.",
                .miss = "The same files, renamed into place."}};
}

}  // namespace cachewarm::caches
