// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::capture {

// One file that may travel.
struct TreeFile {
  std::string path;
  caches::Placement placement;
  fs::FileStat stat;
};

struct TreeListing {
  std::vector<TreeFile> files;                 // by path
  std::map<std::string, int64_t> left_behind;  // reason to number of files
};

// The allow-listed files of a tree, the root of a generation ("inductor/...", "triton/..." below
// it). Links and other odd things are left behind. RESOURCE_EXHAUSTED when the tree has more than
// 1,000,000 names or 64 levels.
absl::StatusOr<TreeListing> ListTree(const fs::Dir& tree, const caches::CacheTable& table);

}  // namespace cachewarm::capture
