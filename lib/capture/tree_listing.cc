// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/tree_listing.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/fs/tree.h"

namespace cachewarm::capture {

absl::StatusOr<TreeListing> ListTree(const fs::Dir& tree, const caches::CacheTable& table) {
  TreeListing listing;
  CW_RETURN_IF_ERROR(fs::Walk(tree, "", {}, [&](const fs::WalkEntry& entry) {
    if (entry.stat.type == fs::FileType::kDirectory) {
      return fs::WalkNext::kContinue;
    }
    if (entry.stat.type != fs::FileType::kFile) {
      ++listing.left_behind["not a regular file"];
      return fs::WalkNext::kContinue;
    }
    caches::Placement placement = table.Classify(entry.path);
    if (placement.carried()) {
      listing.files.push_back({entry.path, std::move(placement), entry.stat});
    } else {
      ++listing.left_behind[std::string(caches::SkipName(placement.skip))];
    }
    return fs::WalkNext::kContinue;
  }));
  // Sort, because the walk orders by directory and not by whole paths ("a.b" sorts before "a/b").
  std::sort(listing.files.begin(), listing.files.end(),
            [](const TreeFile& a, const TreeFile& b) { return a.path < b.path; });
  return listing;
}

}  // namespace cachewarm::capture
