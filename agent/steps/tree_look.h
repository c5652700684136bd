// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/steps/settle.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// One file that may travel.
struct TreeFile {
  std::string path;
  caches::Placement placement;
  fs::FileStat stat;
};

// The allow-listed files of a tree, by path. Links and other odd things are as if absent.
// RESOURCE_EXHAUSTED when the tree has more than 1,000,000 names or 64 levels.
absl::StatusOr<std::vector<TreeFile>> LookAtTree(const fs::Dir& tree,
                                                 const caches::CacheTable& table);

SettleSample SampleOf(const std::vector<TreeFile>& files);

}  // namespace cachewarm::agent
