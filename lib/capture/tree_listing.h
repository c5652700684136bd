// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/api/node_cache.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::capture {

// One file that may be captured.
struct TreeFile {
  std::string path;
  caches::Placement placement;
  fs::FileStat stat;
};

struct TreeListing {
  std::vector<TreeFile> files;                 // sorted by path
  std::map<std::string, int64_t> left_behind;  // number of files that are not captured, by reason
  api::LeftBehind unnamed;  // files that match no cache kind; `left_behind` counts them too
};

// Lists the files of a tree that `table` allows in a bundle. `tree` is the root of a generation
// ("inductor/...", "triton/..." below it). Links and special files are never captured, and are
// counted in `left_behind`. Ignores files below ".cachewarm", which "cachewarm run" writes.
// RESOURCE_EXHAUSTED if the tree has more than 1,000,000 names or 64 levels.
absl::StatusOr<TreeListing> ListTree(const fs::Dir& tree, const caches::CacheTable& table);

}  // namespace cachewarm::capture
