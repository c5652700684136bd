// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/evidence/events.h"
#include "agent/steps/tree_look.h"
#include "lib/caches/file_check.h"

namespace cachewarm::agent {

// What one bundle is made of.
struct Selection {
  std::vector<TreeFile> files;                 // by path
  bool native = false;                         // holds host code of one CPU class
  std::vector<std::string> gpu_architectures;  // sorted, each once
  caches::StoredCompileTime compile_time;
  // "path: why" of damaged files; they and what is useless without them stay behind.
  std::vector<std::string> torn;
};

struct SelectionInput {
  const fs::Dir& tree;
  const caches::CacheTable& table;
  const UsedFiles& used;
  std::function<void(const std::string&)> on_opening;  // before every read of a file; may be empty
};

// Of `files` those that the builder used, as far as they are whole. Reads every one of them.
// ABORTED when a file went away or changed meanwhile.
absl::StatusOr<Selection> SelectFiles(std::vector<TreeFile> files, const SelectionInput& input);

}  // namespace cachewarm::agent
