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

// Where the files of a bundle are made. Not thread-safe; one per worker.
class FileMaker {
 public:
  FileMaker() = default;
  FileMaker(const FileMaker&) = delete;
  FileMaker& operator=(const FileMaker&) = delete;
  virtual ~FileMaker() = default;

  // A new file for writing; none: the content is verified and not kept.
  virtual absl::StatusOr<fs::Fd> Make(const Entry& entry) = 0;
  // All of it is written, its mtime set; not called for what is not kept.
  virtual absl::Status Finish(const Entry& /*entry*/, const fs::Fd& /*file*/) {
    return absl::OkStatus();
  }
};

// DATA_LOSS: the content of its file is another one.
absl::Status EntryDigestMismatch(const Entry& entry);

// The mtime of its entry, where that says one.
absl::Status SetMtime(const Entry& entry, const fs::Fd& file);

// Makes the file of `entry`, of which `content` is all, and sets its mtime. Verifies nothing.
absl::Status WriteFile(const Entry& entry, std::string_view content, FileMaker& maker);

// A file whose content comes in several pieces. One thread at a time, each with its own maker.
class NewFile {
 public:
  // `entry` must outlive it. With `checked` its sha256 is compared in the end.
  static absl::StatusOr<NewFile> Begin(const Entry& entry, bool checked, FileMaker& maker);

  const Entry& entry() const { return *entry_; }
  int64_t left_bytes() const { return left_bytes_; }
  // INVALID_ARGUMENT when it is more than the entry says.
  absl::Status Write(std::string_view content);
  // When nothing is left: it has the sha256 of its entry, else DATA_LOSS. Sets the mtime.
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
