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
  // Bytes of the names that Walk() holds at once: those of the directory that it visits and of the
  // directories above it.
  int64_t name_bytes_max = 256 << 20;
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

// Removes at most `entries_max` names at and below `path`, without following links. Returns true if
// `path` is gone, false if names remain; the next call then continues. Unlike RemoveTree(), it
// removes trees of any size and depth: it renames a directory that is more than 64 levels deep to
// "<path>.<inode>", which the caller must remove too. FAILED_PRECONDITION as RemoveTree().
absl::StatusOr<bool> RemoveSome(const Dir& dir, std::string_view path, int64_t entries_max);

// Moves every name in the directory `from` into the directory `to` on the same file system, without
// following links. Processes that use `from`, for example as a mount, keep using it. Skips names
// that exist in `to` already. Names that are made meanwhile may stay.
absl::Status MoveContent(const Dir& dir, std::string_view from, std::string_view to);

// Returns the disk usage of one name: of a file with n hard links an nth, so that the sum over all
// names is the disk usage.
int64_t AllocatedShare(const FileStat& stat);

struct TreeUsage {
  int64_t files = 0;
  int64_t inodes = 0;  // files, directories and links
  int64_t bytes = 0;   // sum of the file sizes
  // Disk usage, including directories and links. Of a file with n hard links, each counts an nth.
  int64_t allocated_bytes = 0;
};

// Sums up the files below `path`. Directories and links count only in allocated_bytes.
absl::StatusOr<TreeUsage> MeasureTree(const Dir& dir, std::string_view path,
                                      const WalkLimits& limits = {});

// The state of a file system (statvfs(3)).
struct Space {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  // available to unprivileged writers
  // Both zero if the file system has no fixed number of inodes.
  int64_t total_inodes = 0;
  int64_t free_inodes = 0;  // available to unprivileged writers
  bool read_only = false;
  bool no_exec = false;
};

// Describes the file system of `dir`.
absl::StatusOr<Space> MeasureSpace(const Dir& dir);

}  // namespace cachewarm::fs
