// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

struct ScanLimits {
  int64_t entries_max = 500'000;
  int depth_max = 32;
};

// Callbacks of a scan. Paths are relative to the root of the tree.
struct ScanVisitor {
  // Called with the open directory before it is listed. A callback that adds a watch misses no
  // file: later files raise an event, existing files are listed. Return false to skip the contents.
  std::function<bool(std::string_view path, int fd)> directory;
  std::function<void(std::string_view path)> file;
};

// Visits `path` of the tree ("" is its root) and everything below it; follows no links. Entries
// that disappear during the scan are skipped. Errors: RESOURCE_EXHAUSTED if the tree exceeds a
// limit; a part of it was visited then.
absl::Status ScanTree(const fs::Dir& root, const std::string& path, const ScanLimits& limits,
                      const ScanVisitor& visitor);

}  // namespace cachewarm::agent
