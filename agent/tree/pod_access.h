// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/sync/warmup_mount.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

// Sets owner and mode of directories and files of trees, so that pods can read and write them. If
// `mount.run_as` is "u<ID>", that user becomes the owner. Without CAP_CHOWN the owner is unchanged,
// which is no error: the mode alone allows pods to read and write.
namespace cachewarm::agent {

// Sets mode and owner of one directory of a tree: every user may write.
absl::Status OpenToPods(const fs::Dir& root, const std::string& path, const Mount& mount);

// Makes `folders` in the directory `tree`, writable for the pods of `mount`. Keeps existing names.
absl::Status MakeFolders(const fs::Dir& root, const Mount& mount, const std::string& tree,
                         const std::vector<std::string>& folders);

// Sets the owner of a file that was just written; its mode is set when it is created. Returns its
// final stat.
absl::StatusOr<fs::FileStat> SetPodOwner(const fs::Fd& file, const Mount& mount);

// Returns true if SetPodOwner() would change nothing about a file with this stat.
bool HasPodOwner(const fs::FileStat& stat, const Mount& mount);

}  // namespace cachewarm::agent
