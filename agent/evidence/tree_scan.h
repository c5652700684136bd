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

// What a scan of a directory that may be new finds. Paths are relative to the tree's root.
struct ScanVisitor {
  // Called with the directory open, before it is listed: watch it here, so that what appears in it
  // later raises an event and what is in it already is found. False: its contents are left out.
  std::function<bool(std::string_view path, int fd)> directory;
  std::function<void(std::string_view path)> file;
};

// Visits `path` of the tree ("" is its root) and all below it, following no link. What disappears
// meanwhile is left out. RESOURCE_EXHAUSTED above the limits: a part was visited.
absl::Status ScanTree(const fs::Dir& root, const std::string& path, const ScanLimits& limits,
                      const ScanVisitor& visitor);

}  // namespace cachewarm::agent
