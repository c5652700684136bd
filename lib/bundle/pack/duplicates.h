// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>

#include "absl/status/status.h"
#include "lib/bundle/pack/tree.h"

namespace cachewarm::bundle {

// Finds files with equal content, which are frequent among the ranks and layers of a model. Sets
// PackTree::content_of, and the digests of the files that it reads: those of at least 32 KiB that
// share size and mtime with another file and leave enough space in a frame for a link. A file and
// all links to it are in one frame; where they would exceed `frame_bytes`, the content is stored
// again. Deterministic. Errors as DigestOfFile(); CANCELLED soon after `stop`.
absl::Status FindDuplicates(PackTree& tree, int64_t frame_bytes, int threads,
                            const std::stop_token& stop);

}  // namespace cachewarm::bundle
