// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/fs/dir.h"

namespace cachewarm::fs {

// Limits of a walk. A walk that exceeds them fails with RESOURCE_EXHAUSTED.
struct WalkLimits {
  int64_t entries_max = 1'000'000;
  int depth_max = 64;
};

struct WalkEntry {
  std::string path;  // relative to the walked directory, e.g. "inductor/ab/x.py"
  FileStat stat;
};

enum class WalkNext { kContinue, kSkipDirectory, kStop };

// Calls `visit` for every name below `path` of `dir` ("" = `dir` itself): a directory before its
// content, the names of one directory in byte order. Reports links but does not follow them; does
// not enter other file systems. Skips names that are removed during the walk.
absl::Status Walk(const Dir& dir, std::string_view path, const WalkLimits& limits,
                  const std::function<WalkNext(const WalkEntry&)>& visit);

// Removes `path` and everything below it, without following links. OK if it does not exist. Makes
// read-only directories writable first. RESOURCE_EXHAUSTED if the tree exceeds `limits`,
// FAILED_PRECONDITION if another file system is mounted in it. In both cases a part of the tree may
// have been removed already.
absl::Status RemoveTree(const Dir& dir, std::string_view path, const WalkLimits& limits = {});

struct TreeUsage {
  int64_t files = 0;
  int64_t bytes = 0;            // sum of the file sizes
  int64_t allocated_bytes = 0;  // disk usage, including directories and links
};

// Sums up the files below `path`. Directories and links count only in allocated_bytes.
absl::StatusOr<TreeUsage> MeasureTree(const Dir& dir, std::string_view path,
                                      const WalkLimits& limits = {});

// The state of a file system (statvfs(3)).
struct Space {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  // available to unprivileged writers
  bool read_only = false;
  bool no_exec = false;
};

// Describes the file system of `dir`.
absl::StatusOr<Space> MeasureSpace(const Dir& dir);

}  // namespace cachewarm::fs
