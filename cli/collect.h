// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/packer.h"
#include "lib/caches/cache_table.h"
#include "lib/capture/selection.h"
#include "lib/fs/dir.h"

namespace cachewarm::cli {

// What of a cache directory goes into a bundle.
struct Collection {
  capture::Selection selection;
  std::vector<bundle::PackFile> files;         // of the selection
  std::map<std::string, int64_t> left_behind;  // reason to number of files
};

// Takes every file of `tree` that `table` lets travel and that is whole. The user's own directory:
// nobody is asked to prove that no engine writes it, but a file that changed until it was packed is
// noticed (ABORTED). `tree` must outlive the files.
absl::StatusOr<Collection> CollectTree(const fs::Dir& tree, const caches::CacheTable& table);

}  // namespace cachewarm::cli
