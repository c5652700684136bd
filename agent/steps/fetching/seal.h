// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/sync/mount.h"
#include "lib/bundle/format.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

// Makes a new tree what pods need: owned by the mount's user where it names one.
namespace cachewarm::agent {

// A file that has just been written, with its mode; what it is then. An agent without CAP_CHOWN
// leaves the owner: the mode alone lets pods read and write.
absl::StatusOr<fs::FileStat> SealFile(const fs::Fd& file, const Mount& mount);

// True when SealFile() would change nothing.
bool IsOwnedAsWanted(const fs::FileStat& stat, const Mount& mount);

// The folders that every tree has, those that the paths of `configs` imply and the tree itself, all
// 0777.
absl::Status SealDirectories(const fs::Dir& root, const std::string& tree, const Mount& mount,
                             const caches::CacheTable& table,
                             const std::vector<const bundle::Config*>& configs);

}  // namespace cachewarm::agent
