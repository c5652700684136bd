// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/sync/mount.h"
#include "lib/bundle/format.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

// Sets owner and modes of a new tree, so that pods can read and write it.
namespace cachewarm::agent {

// Sets the owner of a file that was just written. Returns its final stat. Without CAP_CHOWN the
// owner is unchanged, which is no error: the mode alone allows pods to read and write.
absl::StatusOr<fs::FileStat> SealFile(const fs::Fd& file, const Mount& mount);

// Returns true if SealFile() would change nothing about a file with this stat.
bool IsOwnedAsWanted(const fs::FileStat& stat, const Mount& mount);

// Makes the folders that every tree has (table.Directories()). Sets owner and mode 0777 of these
// folders, of the directories of the files that `configs` list, and of the tree itself.
absl::Status SealDirectories(const fs::Dir& root, const std::string& tree, const Mount& mount,
                             const caches::CacheTable& table,
                             const std::vector<const bundle::Config*>& configs);

}  // namespace cachewarm::agent
