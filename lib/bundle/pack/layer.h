// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"
#include "lib/bundle/pack/tree.h"
#include "lib/bundle/packer.h"
#include "lib/bundle/stream.h"

namespace cachewarm::bundle {

struct Layer {
  LayerIndex index;
  Descriptor blob;
};

// Writes `tree` as one layer to `sink` and completes its entries. The frames are read, hashed and
// compressed by `options.threads` workers; the calling thread hashes tar and blob and feeds the
// sink, in order. The same bytes whatever the number of threads. Memory and errors as packer.h
// says.
absl::StatusOr<Layer> WriteLayer(PackTree& tree, const PackOptions& options, Sink& sink,
                                 const std::stop_token& stop);

}  // namespace cachewarm::bundle
