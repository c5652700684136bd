// SPDX-License-Identifier: Apache-2.0
// AWS Neuron: one directory neuronxcc-<version>/MODULE_<graph>+<flags>/ per compiled graph, with
// the executable in model.neff. A lock beside it ("*.lock") that a killed compiler left behind
// makes every later start wait, so it is never captured. Opt-in, because the GPU type of a node
// does not name Neuron devices, so bundles also fit nodes without them.
#include "lib/caches/kind.h"

namespace cachewarm::caches {

CacheKind NeuronKind() {
  const UnitRule graph = {.components = 2};
  return {.name = "neuron",
          .path = "neuron",
          .env = {{"NEURON_COMPILE_CACHE_URL"}},
          .nested = {},
          .files = {{.glob = "neuronxcc-*/MODULE_*/model.neff",
                     .role = Role::kIndex,
                     .hard_link = false,
                     .in_place = true,
                     .unit = graph},
                    {.glob = "neuronxcc-*/MODULE_*/*",
                     .role = Role::kOutput,
                     .hard_link = false,
                     .in_place = true,
                     .unit = graph}},
          .versions = {{.engine = "neuronxcc", .glob = "neuronxcc-*/**", .before = "neuronxcc-"}},
          .batons = {"**/*.lock"},
          .opt_in =
              "The GPU type of a node does not name Neuron devices, so bundles also fit "
              "nodes without them.",
          .facts = {.engine = "AWS Neuron",
                    .proof = "Read from paths in public logs of neuronx-cc 2.14 to 2.26; not "
                             "tested with a running engine.",
                    .absolute_paths = "None known.",
                    .hit = "model.neff of the graph.",
                    .miss = "The files of one directory per graph."}};
}

}  // namespace cachewarm::caches
