// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"
#include "lib/bundle/pack/tree.h"
#include "lib/bundle/packer.h"

namespace cachewarm::bundle {

struct Layer {
  LayerIndex index;
  Descriptor blob;
};

// Writes `tree` as one layer to `sink` and sets frame and digest of its entries. `options.threads`
// worker threads read, hash and compress the frames; the calling thread computes the hash of the
// tar and writes to the sink, in order. Deterministic. Memory and errors are as for Pack().
absl::StatusOr<Layer> WriteLayer(PackTree& tree, const PackOptions& options, LayerSink& sink,
                                 const std::stop_token& stop);

}  // namespace cachewarm::bundle
