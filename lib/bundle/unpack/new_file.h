// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/digest.h"
#include "lib/bundle/format.h"
#include "lib/fs/fd.h"

namespace cachewarm::bundle {

// Creates the files of a bundle. Not thread-safe: each worker thread has its own.
class FileMaker {
 public:
  FileMaker() = default;
  FileMaker(const FileMaker&) = delete;
  FileMaker& operator=(const FileMaker&) = delete;
  virtual ~FileMaker() = default;

  // Returns a new file for writing, or an empty Fd to verify the content without keeping it.
  virtual absl::StatusOr<fs::Fd> Make(const Entry& entry) = 0;
  // Called after the content was written and the mtime set, unless Make() returned an empty Fd.
  virtual absl::Status Finish(const Entry& /*entry*/, const fs::Fd& /*file*/) {
    return absl::OkStatus();
  }
};

// Returns the error DATA_LOSS with the message that the content does not match the digest of
// `entry`.
absl::Status EntryDigestMismatch(const Entry& entry);

// Sets the mtime of the file to that of `entry`, unless the latter is 0.
absl::Status SetMtime(const Entry& entry, const fs::Fd& file);

// Creates the file of `entry` with `content`, and sets its mtime. Does not check size or digest.
absl::Status WriteFile(const Entry& entry, std::string_view content, FileMaker& maker);

// Writes a file whose parts arrive in any order, on several threads. Thread-safe.
class PartedFile {
 public:
  // `entry` must outlive the PartedFile. If `is_checked`, the sha256 of the content is compared
  // with that of the entry.
  PartedFile(const Entry& entry, int64_t parts, bool is_checked)
      : entry_(entry), is_checked_(is_checked), left_parts_(parts) {}

  const Entry& entry() const { return entry_; }
  bool is_checked() const { return is_checked_; }
  // Writes `content` at `offset`. Creates the file if this is the first call. Each thread passes a
  // `maker` of its own.
  absl::Status Write(int64_t offset, std::string_view content, FileMaker& maker);
  // Call once for each part, after Write(); if is_checked(), in the order of the parts. After the
  // last one, sets the mtime, closes the file and returns true. DATA_LOSS if the sha256 differs.
  absl::StatusOr<bool> EndPart(std::string_view content, FileMaker& maker);

 private:
  const Entry& entry_;
  const bool is_checked_;
  std::mutex mutex_;
  std::optional<fs::Fd> file_;  // set by the first Write(); empty Fd: the content is not kept
  int64_t left_parts_;
  Sha256 hash_;
};

}  // namespace cachewarm::bundle
