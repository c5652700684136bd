// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/api/node_cache.h"
#include "lib/bundle/policy.h"
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

struct ListLimits {
  int64_t files_max = bundle::Limits().entries_max;  // of the files that `table` allows
  int64_t path_bytes_max = 64 << 20;                 // of the paths of these files together
};

// Lists the files of a tree that `table` allows in a bundle. `tree` is the root of a generation
// ("inductor/...", "triton/..." below it). Links and special files are never captured, and are
// counted in `left_behind`. So are files that no bundle can hold, because of their name, size or
// mtime, and the files that must travel together with them (Placement::unit). Ignores files below
// ".cachewarm", which "cachewarm run" writes. RESOURCE_EXHAUSTED if the tree exceeds `limits`, or
// has more than 1,000,000 names, 64 levels or 64 MiB of names in one directory.
absl::StatusOr<TreeListing> ListTree(const fs::Dir& tree, const caches::CacheTable& table,
                                     const ListLimits& limits = {});

}  // namespace cachewarm::capture
