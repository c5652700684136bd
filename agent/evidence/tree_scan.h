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
  int64_t name_bytes_max = 32 << 20;  // of the names of the directories that are open at once
  int depth_max = 32;
};

// Callbacks of a scan. Paths are relative to the root of the tree.
struct ScanVisitor {
  // Called with the open directory before it is listed. If the callback adds a watch, no file is
  // missed: existing files are listed, later files raise an event. Return false to skip the
  // directory's entries.
  std::function<bool(std::string_view path, int fd)> directory;
  std::function<void(std::string_view path)> file;
};

struct ScanResult {
  // RESOURCE_EXHAUSTED if the tree exceeds a limit; then only a part of it was visited.
  absl::Status status;
  // Number of names that were read, links and special files too. If `status` is
  // RESOURCE_EXHAUSTED, it is at least `entries_max`.
  int64_t names = 0;
};

// Visits `path` of the tree ("" is its root) and everything below it; follows no links. Skips
// entries that disappear during the scan.
ScanResult ScanTree(const fs::Dir& root, const std::string& path, const ScanLimits& limits,
                    const ScanVisitor& visitor);

}  // namespace cachewarm::agent
