// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/tree/records.h"
#include "lib/bundle/format.h"
#include "lib/bundle/unpack/needed.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Pods use the sources: our own reads must be told from theirs.
using OnOpeningSource = std::function<void(const std::string& generation, const std::string& path)>;

// Into one new tree, out of others of this node. What it refers to must outlive the call.
struct ReuseJob {
  const fs::Dir& root;
  const fs::Dir& staging;  // of the new tree
  const caches::CacheTable& table;
  const Mount& mount;                       // of the new tree
  const std::vector<std::string>& sources;  // generations
  int threads = 2;
  // Makes the directories of the new tree. The journals of the sources are read meanwhile: each
  // takes about as long as the other.
  std::function<absl::Status()> make_directories;
  // Before every open of a file in a source, by several threads at the same time; may be empty.
  OnOpeningSource on_opening;
};

struct Reused {
  bundle::PresentEntries present;  // as the config's entries; empty when nothing was there
  int64_t files = 0;
  int64_t bytes = 0;
};

// Makes the directories, and gives the new tree the files of `config` whose content a source has.
// A file counts only if it is the one that was put there: its stamp is that of the
// journal, or, where only its ctime is another (a link to it came or went), its sha256 still is.
// Kinds that lib/caches marks so are linked, with the same owner, mode and mtime; others are cloned
// where the file system can and copied where it cannot, verified on the way. `placed` is told of
// each, by several threads at the same time. What fails in a source is not present; an error is one
// of the new tree, or CANCELLED.
absl::StatusOr<Reused> ReuseContents(
    const ReuseJob& job, const bundle::Config& config,
    const std::function<void(const bundle::Entry&, const fs::FileStat&)>& placed,
    std::stop_token stop);

}  // namespace cachewarm::agent
