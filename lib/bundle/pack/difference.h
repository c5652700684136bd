// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"
#include "lib/bundle/pack/tree.h"

// Compares a tree with an older bundle, whose layers are reused unchanged
// (docs/design/0009-incremental-bundles.md).
namespace cachewarm::bundle {

// Returns, for each file of `tree`, the entry of `base` with equal path, kind, mtime and content,
// or null. Compares contents by hash, on `threads` threads, and only if path, kind, mtime and size
// are equal. CANCELLED soon after `stop`; otherwise the error of reading a file.
absl::StatusOr<std::vector<const Entry*>> FindUnchanged(const Bundle& base, const PackTree& tree,
                                                        int threads, const std::stop_token& stop);

// False if the tree should be packed whole instead of as a layer on `base`, because most of it is
// new, most content of the old layers belongs to files that were changed or removed, or `base` has
// many layers. `kept` is the result of FindUnchanged().
bool IsLayerWorthwhile(const Bundle& base, const std::vector<const Entry*>& kept,
                       const PackTree& tree);

// Returns the sorted paths of the whiteouts that remove from `base` the files that `tree` lacks.
// The name of a whiteout is ".wh.", followed by the name of the removed file, or of the topmost
// directory that is removed as a whole (OCI image-spec 1.1, layer.md). A file that became a
// directory, or vice versa, needs no whiteout: the new member replaces the old one.
std::vector<std::string> WhiteoutsOf(const Config& base, const PackTree& tree);

// Returns the entries of `base` that remain visible when `tree` is laid over it, sorted by path. An
// entry is hidden if `tree` has a file or directory at the entry's path, or a file in place of one
// of the entry's parent directories.
std::vector<Entry> RetainedEntries(const Config& base, const PackTree& tree);

}  // namespace cachewarm::bundle
