// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"
#include "lib/bundle/pack/tree.h"

// What a tree has in common with an older bundle, whose layers are used again as they are
// (docs/design/0009-updates.md).
namespace cachewarm::bundle {

// For each file of `tree` the entry of `base` with the same path, kind, mtime and content; null
// where there is none. Reads and hashes the files that could be the same, by `threads` threads.
// CANCELLED soon after `stop`; else the error of a file.
absl::StatusOr<std::vector<const Entry*>> FindUnchanged(const Bundle& base, const PackTree& tree,
                                                        int threads, const std::stop_token& stop);

// False where a whole new layer serves better: most of the tree is new, most of what the old
// layers hold is gone, or there are many of them.
bool IsLayerWorthwhile(const Bundle& base, const std::vector<const Entry*>& kept,
                       const PackTree& tree);

// The paths that say, in a newer layer, that what `base` has and `tree` has not is gone: ".wh."
// before the name of the file or of the highest directory that is gone as a whole (OCI image-spec
// 1.1, layer.md). Sorted. Where a file became a directory, or the other way round, none is needed.
std::vector<std::string> WhiteoutsOf(const Config& base, const PackTree& tree);

// The entries of `base` that a union with `tree` has beside those of `tree`: at paths that are
// neither files nor directories of it, nor below one of its files. In the order of their paths.
std::vector<Entry> RetainedEntries(const Config& base, const PackTree& tree);

}  // namespace cachewarm::bundle
