// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/fs/dir.h"

namespace cachewarm::fs {

// What a walk may meet before it gives up with RESOURCE_EXHAUSTED.
struct WalkLimits {
  int64_t entries_max = 1'000'000;
  int depth_max = 64;
};

// Below the walked directory, e.g. "inductor/ab/x.py".
struct WalkEntry {
  std::string path;
  FileStat stat;
};

enum class WalkNext { kContinue, kSkipDirectory, kStop };

// Calls `visit` for everything below `path` of `dir` ("" = all of it), a directory before what it
// holds, names of one directory in byte order. Links are reported, never followed; other file
// systems are not entered. What disappears during the walk is left out.
absl::Status Walk(const Dir& dir, std::string_view path, const WalkLimits& limits,
                  const std::function<WalkNext(const WalkEntry&)>& visit);

// Removes `path` and all below it, following nothing. What is gone already is OK. Directories that
// forbid it are made writable first. RESOURCE_EXHAUSTED above `limits`, FAILED_PRECONDITION at
// another file system: a part is removed then.
absl::Status RemoveTree(const Dir& dir, std::string_view path, const WalkLimits& limits = {});

struct TreeUsage {
  int64_t files = 0;
  int64_t bytes = 0;            // sum of the sizes
  int64_t allocated_bytes = 0;  // what it takes on the disk
};

absl::StatusOr<TreeUsage> MeasureTree(const Dir& dir, std::string_view path,
                                      const WalkLimits& limits = {});

// The file system that holds `dir`, by statvfs(3).
struct Space {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  // for unprivileged writers
  bool read_only = false;
  bool no_exec = false;
};

absl::StatusOr<Space> MeasureSpace(const Dir& dir);

}  // namespace cachewarm::fs
