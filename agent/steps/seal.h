// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/tree/records.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

struct SealEntry {
  std::string kind;
  Digest digest;
};

// Makes a freshly extracted tree ready for pods: the folders that every tree has, directories
// 0777, files 0444 or 0666 as lib/caches says, all owned by the mount's user. Returns the stamp of
// every file, by path. INTERNAL when the tree holds what `entries` does not name.
absl::StatusOr<std::vector<EntryRecord>> SealTree(const fs::Dir& root, const std::string& tree,
                                                  const Mount& mount,
                                                  const caches::CacheTable& table,
                                                  const std::map<std::string, SealEntry>& entries);

}  // namespace cachewarm::agent
