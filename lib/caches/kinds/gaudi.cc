// SPDX-License-Identifier: Apache-2.0
// Intel Gaudi: <graph>_<device>_syn<version>.recipe and .metadata. The variable holds three values:
// the directory, whether to empty the directory at the start (false), and its limit in MB. If the
// variable is not set, the bridge writes no recipes to disk. Opt-in, because the variable turns
// that cache on, and because the GPU type of a node does not name Gaudi devices.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind GaudiKind() {
  return {
      .name = "gaudi",
      .path = "gaudi",
      .env = {{"PT_HPU_RECIPE_CACHE_CONFIG", "@,false,16384"}},
      .nested = {},
      .files = {{.glob = "*.recipe",
                 .role = Role::kIndex,
                 .hard_link = false,
                 .in_place = true,
                 .unit = {.stem = true}},
                {.glob = "*.metadata",
                 .role = Role::kOutput,
                 .hard_link = false,
                 .in_place = true,
                 .unit = {.stem = true}}},
      .opt_in =
          "The variable turns the recipe cache on, and the GPU type of a node does not name Gaudi "
          "devices.",
      .facts = {.engine = "Intel Gaudi PyTorch bridge",
                .proof = "Read from vendor documentation and the file names of a public tool; not "
                         "tested with a running engine.",
                .absolute_paths = "None known.",
                .hit = "One *.recipe with its *.metadata per graph.",
                .miss = "The same files. Above 16384 MB the bridge removes the oldest."}};
}

}  // namespace cachewarm::caches
