// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/tree_look.h"

#include <algorithm>

#include "lib/base/status.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {

absl::StatusOr<std::vector<TreeFile>> LookAtTree(const fs::Dir& tree,
                                                 const caches::CacheTable& table) {
  std::vector<TreeFile> files;
  CW_RETURN_IF_ERROR(fs::Walk(tree, "", {}, [&](const fs::WalkEntry& entry) {
    if (entry.stat.type == fs::FileType::kFile) {
      caches::Placement placement = table.Classify(entry.path);
      if (placement.carried()) {
        files.push_back({entry.path, std::move(placement), entry.stat});
      }
    }
    return fs::WalkNext::kGoOn;
  }));
  // A walk goes folder by folder, which is not the order of whole paths ("a.b" and "a/b").
  std::sort(files.begin(), files.end(),
            [](const TreeFile& a, const TreeFile& b) { return a.path < b.path; });
  return files;
}

SettleSample SampleOf(const std::vector<TreeFile>& files) {
  SettleSample sample;
  for (const TreeFile& file : files) {
    ++sample.files;
    sample.bytes += file.stat.bytes;
    sample.newest_mtime_ns = std::max(sample.newest_mtime_ns, file.stat.mtime_ns);
  }
  return sample;
}

}  // namespace cachewarm::agent
