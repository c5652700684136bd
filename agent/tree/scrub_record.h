// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Inode, size and times of a file. While they match, the file is unchanged.
struct FileStamp {
  std::string path;
  int64_t bytes = 0;
  uint64_t inode = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// Scrub results of one tree, in addition to its entry records.
struct ScrubRecord {
  WallTime at{};        // end of the last complete pass; zero: none
  int64_t entries = 0;  // length of the tree's entry list
  int64_t checked = 0;  // number of entries, from the first, whose content was read
  std::vector<FileStamp> modified_by_engine;  // files that engines wrote at paths of the bundle
  friend bool operator==(const ScrubRecord&, const ScrubRecord&) = default;
};

absl::Status WriteScrubRecord(const fs::Dir& root, const std::string& generation,
                              const ScrubRecord& record);
// Errors: NOT_FOUND before the first pass. After any error, the next pass reads all files of the
// tree.
absl::StatusOr<ScrubRecord> ReadScrubRecord(const fs::Dir& root, const std::string& generation);

}  // namespace cachewarm::agent
