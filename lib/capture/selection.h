// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/worker_pool.h"
#include "lib/caches/file_check.h"
#include "lib/capture/tree_listing.h"

namespace cachewarm::capture {

// What one bundle is made of.
struct Selection {
  std::vector<TreeFile> files;                 // by path
  bool native = false;                         // holds host code of one CPU class
  std::vector<std::string> gpu_architectures;  // sorted, each once
  caches::StoredCompileTime compile_time;
  // "path: why" of damaged files; they and what is useless without them stay behind.
  std::vector<std::string> truncated;
};

struct SelectionInput {
  const fs::Dir& tree;
  // Before every read of a file, by several threads at the same time; may be empty.
  std::function<void(const std::string&)> on_opening;
  int threads = bundle::DefaultThreads();
};

// Of `files` those that are whole. Looks into every one of them.
// ABORTED when a file went away or changed meanwhile.
absl::StatusOr<Selection> SelectFiles(std::vector<TreeFile> files, const SelectionInput& input);

}  // namespace cachewarm::capture
