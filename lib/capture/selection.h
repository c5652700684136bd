// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/worker_pool.h"
#include "lib/caches/file_check.h"
#include "lib/capture/tree_listing.h"

namespace cachewarm::capture {

// The files of a new bundle and the facts found in them.
struct Selection {
  std::vector<TreeFile> files;  // sorted by path
  // True if a listed file is host machine code of one CPU class or holds the source of such code.
  // Counts dropped files too; all other facts are those of `files` alone.
  bool native = false;
  std::vector<std::string> gpu_architectures;  // sorted, each once
  // Version of each engine that a file names: {"triton", "3.7.1"}; several as "3.6.0, 3.7.1".
  std::map<std::string, std::string> engines;
  caches::StoredCompileTime compile_time;
  // "path: reason" of each truncated file. `files` contains neither these files nor the files that
  // are captured only together with them (Placement::unit, Placement::autotune_set).
  std::vector<std::string> truncated;
};

struct SelectionInput {
  const fs::Dir& tree;
  // Called before every file is opened, concurrently; may be empty.
  std::function<void(const std::string&)> on_opening;
  int threads = bundle::DefaultThreads();
};

// Reads every file of `files` and drops the truncated ones and empty autotune results, together
// with all files of the same unit (Placement::unit) or set (Placement::autotune_set). Returns
// ABORTED if a file was removed or changed since it was listed.
absl::StatusOr<Selection> SelectFiles(std::vector<TreeFile> files, const SelectionInput& input);

}  // namespace cachewarm::capture
