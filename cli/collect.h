// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/packer.h"
#include "lib/caches/cache_table.h"
#include "lib/caches/file_check.h"
#include "lib/fs/dir.h"

namespace cachewarm::cli {

// What of a cache directory goes into a bundle.
struct Collection {
  std::vector<bundle::PackFile> files;
  bool native = false;  // holds host code of one CPU class
  std::set<std::string> gpu_architectures;
  caches::StoredCompileTime compile_time;
  std::map<std::string, int64_t> left_behind;  // reason to number of files
  std::vector<std::string> damaged;            // "path: why"; left behind too
};

// Walks `tree`, the root of a generation ("inductor/...", "triton/..." below it), and takes
// every file that `table` lets travel and that is whole. The files open `tree` again when they are
// packed and answer ABORTED when they changed since: `tree` must outlive them.
absl::StatusOr<Collection> CollectTree(const fs::Dir& tree, const caches::CacheTable& table);

}  // namespace cachewarm::cli
