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
// or null. Reads and hashes the candidates on `threads` threads. CANCELLED soon after `stop`; else
// the error of a file.
absl::StatusOr<std::vector<const Entry*>> FindUnchanged(const Bundle& base, const PackTree& tree,
                                                        int threads, const std::stop_token& stop);

// False if the tree should be packed whole, because most of it is new, most content of the old
// layers is obsolete, or there are many layers.
bool IsLayerWorthwhile(const Bundle& base, const std::vector<const Entry*>& kept,
                       const PackTree& tree);

// Returns the whiteouts, sorted, that remove from `base` the files that `tree` lacks: ".wh." before
// the name of the file or of the topmost directory that is removed as a whole (OCI image-spec 1.1,
// layer.md). A file that became a directory, or vice versa, needs none.
std::vector<std::string> WhiteoutsOf(const Config& base, const PackTree& tree);

// Returns the entries of `base` that a union with `tree` retains, sorted by path: those whose path
// is neither a file nor a directory of `tree` and not below one of its files.
std::vector<Entry> RetainedEntries(const Config& base, const PackTree& tree);

}  // namespace cachewarm::bundle
