// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/tree/journal.h"
#include "lib/bundle/format.h"
#include "lib/bundle/unpack/needed.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Called before the agent reads a file of a source tree: pods use these trees too, and the agent's
// reads must not be recorded as reads by pods.
using OnOpeningSource = std::function<void(const std::string& generation, const std::string& path)>;

// Input of ReuseContents(): one new tree and the source trees. All references must outlive the
// call.
struct ReuseJob {
  const fs::Dir& root;
  const fs::Dir& staging;  // staging directory of the new tree
  const caches::CacheTable& table;
  const Mount& mount;                       // mount of the new tree
  const std::vector<std::string>& sources;  // generations of the source trees
  // By index in the bundle's entries: true for files that the new tree must not have; they are
  // reported as present. Empty: all files are wanted.
  std::vector<bool> excluded = {};
  int threads = 2;
  // Makes the directories of the new tree. Runs concurrently with reading the journals of the
  // sources, which takes about as long.
  std::function<absl::Status()> make_directories;
  // Called before every open of a file in a source, by several threads concurrently. May be empty.
  OnOpeningSource on_opening;
};

struct Reused {
  // For each entry of the bundle, by index: whether the entry's file was reused or is excluded.
  // Empty if no file was.
  bundle::PresentEntries present;
  int64_t files = 0;
  int64_t bytes = 0;
};

// Makes the directories and adds the files of `config` that a source tree already has. A source
// file is used if inode, size and times match the journal. If only the ctime differs, the sha256 of
// the file must match: creating or removing a hard link also changes the ctime. A file is
// hard-linked if lib/caches allows hard links for its type, and if owner, mode and mtime are equal.
// Other files are cloned if the file system supports it, else copied and verified. Calls `placed`
// for each file, by several threads concurrently. A source file that cannot be read is not reused.
// Errors: only those of writing the new tree, and CANCELLED.
absl::StatusOr<Reused> ReuseContents(
    const ReuseJob& job, const bundle::Config& config,
    const std::function<void(const bundle::Entry&, const fs::FileStat&)>& placed,
    std::stop_token stop);

}  // namespace cachewarm::agent
