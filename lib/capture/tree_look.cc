// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/tree_look.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/fs/tree.h"

namespace cachewarm::capture {

absl::StatusOr<TreeLook> LookAtTree(const fs::Dir& tree, const caches::CacheTable& table) {
  TreeLook look;
  CW_RETURN_IF_ERROR(fs::Walk(tree, "", {}, [&](const fs::WalkEntry& entry) {
    if (entry.stat.type == fs::FileType::kDirectory) {
      return fs::WalkNext::kGoOn;
    }
    if (entry.stat.type != fs::FileType::kFile) {
      ++look.left_behind["not a regular file"];
      return fs::WalkNext::kGoOn;
    }
    caches::Placement placement = table.Classify(entry.path);
    if (placement.carried()) {
      look.files.push_back({entry.path, std::move(placement), entry.stat});
    } else {
      ++look.left_behind[std::string(caches::SkipName(placement.skip))];
    }
    return fs::WalkNext::kGoOn;
  }));
  // A walk goes folder by folder, which is not the order of whole paths ("a.b" and "a/b").
  std::sort(look.files.begin(), look.files.end(),
            [](const TreeFile& a, const TreeFile& b) { return a.path < b.path; });
  return look;
}

}  // namespace cachewarm::capture
