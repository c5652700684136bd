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
#include "lib/capture/selection.h"
#include "lib/fs/dir.h"

namespace cachewarm::cli {

// Files of a cache directory that go into a bundle.
struct Collection {
  capture::Selection selection;
  std::vector<bundle::PackFile> files;         // the selected files
  std::map<std::string, int64_t> left_behind;  // number of skipped files by reason
  api::LeftBehind unnamed;                     // the skipped files that match no cache kind
};

// Collects every complete file of `tree` that `table` allows in a bundle. Does not detect that a
// process is still writing a file; but if a file changes after this call, reading it fails with
// ABORTED. `tree` must outlive the files.
//
// The second form also collects the files whose paths are in `also`, if any preset allows them.
absl::StatusOr<Collection> CollectTree(const fs::Dir& tree, const caches::CacheTable& table);
absl::StatusOr<Collection> CollectTree(const fs::Dir& tree, const caches::CacheTable& table,
                                       const std::set<std::string>& also);

}  // namespace cachewarm::cli
