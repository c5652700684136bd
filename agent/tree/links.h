// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sync/warmup_mount.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"

// Manages the links that pods mount. If the agent is killed at any instruction, each path still
// resolves to a complete directory, either the old one or the new one. After a power cut it may
// also lead to a tree that is incomplete or missing; retire.h and PrepareMount() replace such a
// tree. These functions never remove a tree that was active. Call on one thread at a time.
namespace cachewarm::agent {

struct PrepareOptions {
  // Folders that every new tree contains, with mode 0777.
  std::vector<std::string> folders;
  WallTime now{};  // time of the activation, for the journal
  int renew = 0;   // value of the counter `renew` in the spec
  // Called before the link of the mount is flipped to `generation`; `fresh` is true if the link
  // never led there before. May be empty.
  std::function<void(const std::string& generation, bool fresh)> before_flip;
};

// Makes `mount` a link to an existing directory that its pods can write. Existing state, and
// result:
//   nothing                a link to a new cold tree
//   a directory (kubelet)  becomes a cold tree; pods keep using the same directory
//   a dangling link        a link to the newest remaining tree of this mount, else to an empty one
//   a link to a tree       the same link; the mode of the tree is corrected
absl::Status PrepareMount(const fs::Dir& root, const Mount& mount, const PrepareOptions& options);

// Flips the link of `mount` to `generation`. A directory at the path of the mount is first
// converted into a tree. Errors: NOT_FOUND if the generation is not on the disk;
// FAILED_PRECONDITION if it is damaged.
absl::Status ActivateGeneration(const fs::Dir& root, const Mount& mount,
                                const std::string& generation, const PrepareOptions& options);

// Flips the link of `mount` to a new empty tree. Returns its id.
absl::StatusOr<std::string> ActivateFreshTree(const fs::Dir& root, const Mount& mount,
                                              const PrepareOptions& options);

// Renames a finished staging tree to the path of its generation, which marks the tree as complete.
// Neither the tree nor its name is synced: MakeDurable() (durable.h) does that after the
// activation. If the generation exists, it is kept and the staging tree is removed.
absl::Status CommitGeneration(const fs::Dir& root, const std::string& generation);

}  // namespace cachewarm::agent
