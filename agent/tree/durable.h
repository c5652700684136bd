// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "lib/fs/dir.h"

// A tree is activated as soon as it is verified, and written to the disk afterwards. Then it gets a
// durable mark: it survives a power cut from now on. RetireForeignTrees() retires trees without
// a mark if the machine has restarted. Trees without a bundle have no mark: cachewarm wrote no file
// there.
namespace cachewarm::agent {

// Returns true if the tree has a durable mark. An error counts as no mark.
bool IsDurable(const fs::Dir& root, const std::string& generation);

// Removes the mark, if any. The removal is durable on return; otherwise a mark could reappear after
// a power cut beside a later tree of the same name. Call before a tree leaves its path.
absl::Status RemoveDurableMark(const fs::Dir& root, const std::string& generation);

// Input of MakeDurable(). All references must outlive the call.
struct SyncJob {
  const fs::Dir& root;
  std::string generation;
  // Called before each open of a file of the tree, with its path in the tree. Its error ends the
  // sync. May be empty.
  std::function<absl::Status(const std::string& path)> before_open = {};
};

// Makes the files of the tree's entry list durable, then the directories, the records and the link
// of the tree, and last writes the mark. Syncs nothing else, so that data that other programs write
// to the same disk does not delay it. Skips files that engines have replaced or removed.
//
// Errors: NOT_FOUND if the tree has no records; CANCELLED within a second after `stop`; DATA_LOSS
// if the disk failed to take a file. A later call must not follow DATA_LOSS, because the kernel
// reports a lost write only once.
absl::Status MakeDurable(const SyncJob& job, const std::stop_token& stop);

}  // namespace cachewarm::agent
