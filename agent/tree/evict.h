// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "agent/sync/warmup_mount.h"
#include "lib/fs/dir.h"

// Takes trees off the disk. A tree leaves its path by one rename into the trash, so a killed agent
// leaves either the whole tree or none; the trash is emptied later, in parts.
namespace cachewarm::agent {

// A tree to take out of use (sync/eviction.h). The caller has checked that no link leads to it,
// except that of `link`.
struct Eviction {
  std::string name;           // of the tree below .gen
  std::optional<Mount> link;  // the mount whose link is removed first, with its empty folders
  std::string warmup_uid;     // owner of the tree; empty: unknown
  std::string run_as;
};

// Removes the link, moves the tree into the trash, and removes the records of both. If the agent is
// killed during the call, the tree is offered again, or RepairJournal() removes its records. Call
// on the thread that switches links.
absl::Status Evict(const fs::Dir& root, const Eviction& eviction);

// Moves `path` into the trash. OK if it does not exist.
absl::Status MoveToTrash(const fs::Dir& root, const std::string& path);

// Moves everything in the directory `path` into the trash. The directory itself stays, so that
// containers that have mounted it find it empty.
absl::Status MoveContentToTrash(const fs::Dir& root, const std::string& path);

// Removes trees in the trash, of each at most `entries_max` names. Returns true if the trash was
// empty; call it again otherwise. Continues with the next tree after an error, which it returns
// last. Call on one thread at a time, which need not be the thread of the other functions.
absl::StatusOr<bool> EmptyTrash(const fs::Dir& root, int64_t entries_max,
                                const std::stop_token& stop = {});

// Removes the empty folders <namespace>/<name>/<uid> that an interrupted eviction left. Call at
// start.
absl::Status RemoveEmptyFolders(const fs::Dir& root);

}  // namespace cachewarm::agent
