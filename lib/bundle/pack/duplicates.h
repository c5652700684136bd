// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>

#include "absl/status/status.h"
#include "lib/bundle/pack/tree.h"

namespace cachewarm::bundle {

// Finds the files of `tree` that hold what an earlier one holds, which ranks and layers of a model
// do often, and sets PackTree::content_of and the digests of what had to be read for it: files of
// at least 32 KiB that share size and mtime with another and leave room for a link in a frame. What
// has one content lies in one frame: where member and links together would be more than
// `frame_bytes`, the content is stored once more. Deterministic. Errors are those of DigestOfFile,
// CANCELLED soon after `stop`.
absl::Status FindDuplicates(PackTree& tree, int64_t frame_bytes, int threads,
                            const std::stop_token& stop);

}  // namespace cachewarm::bundle
