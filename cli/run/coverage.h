// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/bundle/format.h"
#include "lib/capture/tree_listing.h"

// Decides whether a publication is needed (docs/design/0022). Pure.
namespace cachewarm::cli {

// By path: size and mtime (ns) of each file of a tree that may be captured.
using TreeSnapshot = std::map<std::string, std::pair<int64_t, int64_t>>;

// Returns the paths in both snapshots whose files differ: files that the engine wrote again.
std::set<std::string> ReplacedFiles(const TreeSnapshot& before, const TreeSnapshot& after);

// True if publishing `files` would add nothing to `bundle`: it has every path, and none of them is
// in `replaced`. Engines name an entry by the hash of its inputs, so files with the same path are
// interchangeable, although two compilations give different bytes.
bool Covers(const bundle::Config& bundle, const std::vector<capture::TreeFile>& files,
            const std::set<std::string>& replaced);

// True if `bundle` has a file that is not in `files`, which is sorted by path: publishing `files`
// alone would lose that file.
bool HasMore(const bundle::Config& bundle, const std::vector<capture::TreeFile>& files);

}  // namespace cachewarm::cli
