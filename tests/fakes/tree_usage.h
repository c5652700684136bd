// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/fs/dir.h"
#include "lib/fs/tree.h"

namespace cachewarm::fakes {

// Returns the number of files below `path`, which counts from `dir`; -1 if it cannot be read.
inline int64_t CountFiles(const fs::Dir& dir, std::string_view path) {
  const absl::StatusOr<fs::TreeUsage> usage = fs::MeasureTree(dir, path);
  return usage.ok() ? usage->files : -1;
}

}  // namespace cachewarm::fakes
