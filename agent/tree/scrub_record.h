// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Inode and times of a file. While they hold, nobody has changed it.
struct FileStamp {
  std::string path;
  int64_t bytes = 0;
  uint64_t inode = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// What is known of one tree by reading its files, beside the entry records that say what was put
// into it.
struct ScrubRecord {
  WallTime at{};                              // end of the last whole pass; zero: there was none
  int64_t entries = 0;                        // of the tree's list, when this was written
  int64_t checked = 0;                        // the first so many of them were read at least once
  std::vector<FileStamp> modified_by_engine;  // files of engines in the place of the bundle's
  friend bool operator==(const ScrubRecord&, const ScrubRecord&) = default;
};

absl::Status WriteScrubRecord(const fs::Dir& root, const std::string& generation,
                              const ScrubRecord& record);
// NOT_FOUND before the first pass; what cannot be read costs one more reading of all files.
absl::StatusOr<ScrubRecord> ReadScrubRecord(const fs::Dir& root, const std::string& generation);

}  // namespace cachewarm::agent
