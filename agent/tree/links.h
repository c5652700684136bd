// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sync/mount.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"

// What pods mount. A kill at any instruction leaves a name that resolves to a whole directory, the
// one before or the one after; a tree that a link has led to is never taken away here. One thread
// at a time.
namespace cachewarm::agent {

struct PrepareOptions {
  // Folders that every tree has from the start, 0777 as the tree itself.
  std::vector<std::string> folders;
  WallTime now{};  // for the journal
  int renew = 0;   // which fresh start of the mount this is
  // Called before a link leads to `generation`; `fresh` when none ever did. May be empty.
  std::function<void(const std::string& generation, bool fresh)> before_flip;
};

// Makes `mount` a link to a directory that its pods can write and that is there:
//   nothing there          a cold tree, then the link
//   a directory (kubelet)  becomes the tree of a cold generation, under the pods that use it
//   a link to nothing      the newest tree of this mount that is left, else an empty one
//   a link to a tree       its mode is put right
absl::Status PrepareMount(const fs::Dir& root, const Mount& mount, const PrepareOptions& options);

// Flips the link of `mount` to `generation`, which must be on the disk (NOT_FOUND) and not damaged
// (FAILED_PRECONDITION). A directory that stands in the way is adopted first.
absl::Status ActivateGeneration(const fs::Dir& root, const Mount& mount,
                                const std::string& generation, const PrepareOptions& options);

// Flips the link of `mount` to an empty tree that no link has led to; its id.
absl::StatusOr<std::string> ActivateFreshTree(const fs::Dir& root, const Mount& mount,
                                              const PrepareOptions& options);

// Gives a finished tree its name: from now on it is complete. The tree must be on the disk already.
// When the generation exists, the staging tree is removed and it stays.
absl::Status CommitGeneration(const fs::Dir& root, const std::string& generation);

// Mode and owner of one directory of a tree: any uid may write, and "u<uid>" owns it.
absl::Status OpenToPods(const fs::Dir& root, const std::string& path, const Mount& mount);

}  // namespace cachewarm::agent
