// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/sync/warmup_mount.h"
#include "lib/bundle/format.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Makes the folders that every tree has (table.Directories()). Sets owner and mode 0777 of these
// folders, of the directories of the files that `configs` list, and of the tree itself.
absl::Status OpenDirectoriesToPods(const fs::Dir& root, const std::string& tree, const Mount& mount,
                                   const caches::CacheTable& table,
                                   const std::vector<const bundle::Config*>& configs);

}  // namespace cachewarm::agent
