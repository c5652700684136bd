// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

// Writes a file whose content arrives in several pieces. One thread at a time; `maker` may differ
// between the calls.
class NewFile {
 public:
  // `entry` must outlive the NewFile. If `checked`, End() compares the sha256 of the content with
  // that of the entry.
  static absl::StatusOr<NewFile> Begin(const Entry& entry, bool checked, FileMaker& maker);

  const Entry& entry() const { return *entry_; }
  int64_t left_bytes() const { return left_bytes_; }
  // Appends `content`. INVALID_ARGUMENT if the file becomes longer than the size of the entry.
  absl::Status Write(std::string_view content);
  // Sets the mtime and closes the file. Call when left_bytes() is 0. DATA_LOSS if the file is
  // `checked` and its sha256 differs.
  absl::Status End(FileMaker& maker);

 private:
  NewFile(const Entry& entry, bool checked, fs::Fd file)
      : entry_(&entry), file_(std::move(file)), left_bytes_(entry.bytes) {
    if (checked) {
      hash_.emplace();
    }
  }

  const Entry* entry_;
  fs::Fd file_;
  int64_t left_bytes_;
  std::optional<Sha256> hash_;
};

}  // namespace cachewarm::bundle
