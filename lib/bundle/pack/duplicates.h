// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>

#include "absl/status/status.h"
#include "lib/bundle/pack/tree.h"

namespace cachewarm::bundle {

// Finds files with equal content and sets PackTree::content_of. Such files are frequent: the
// processes that serve a model compile equal code, and so do equal layers of the model. Reads only
// files of at least 32 KiB that share size and mtime with another file: first their first 4 KiB,
// and all of those that are equal so far, whose digests it sets.
// Does not read a file that is so large that its frame has no space for a hard link to it. A file
// and the links to it must be in one frame: when that frame would exceed `frame_bytes`, the next
// duplicate is stored with its content. Deterministic. Errors are those of DigestOfFile();
// CANCELLED soon after `stop`.
absl::Status FindDuplicates(PackTree& tree, int64_t frame_bytes, int threads,
                            const std::stop_token& stop);

}  // namespace cachewarm::bundle
