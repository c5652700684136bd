// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/bundle/store/store.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

namespace cachewarm::bundle {

inline constexpr char kBlobs[] = "blobs/sha256";
inline constexpr char kUploads[] = ".uploads";

// Writes a file in .uploads/ of a repository and then renames it, so that readers never see an
// incomplete file. The file is locked until this object is destroyed; Start() removes abandoned
// files, which no process has locked. Destroying the object before MoveTo() deletes the file. One
// thread at a time.
class UploadFile {
 public:
  static absl::StatusOr<UploadFile> Start(const fs::Dir& repository);
  UploadFile(UploadFile&& other) noexcept;
  UploadFile& operator=(UploadFile&&) = delete;
  ~UploadFile();

  absl::Status Write(std::string_view bytes);
  // Returns the metadata of the file, whose mtime is by the clock of the file system.
  absl::StatusOr<fs::FileStat> Stat() const;
  // Renames the file to `path` with `mode`, replacing a file of that name; durable on return. Call
  // at most once.
  absl::Status MoveTo(const std::string& path, mode_t mode);

 private:
  UploadFile(const fs::Dir& repository, std::string name, fs::Fd file);

  const fs::Dir* repository_;
  std::string name_;  // path of the file; empty after MoveTo(): the destructor removes nothing
  fs::Fd file_;
  int64_t bytes_ = 0;
  int64_t flushed_bytes_ = 0;  // bytes whose write-back to disk was started
};

// Starts an upload whose Commit() moves the file to blobs/sha256/.
absl::StatusOr<std::unique_ptr<BlobUpload>> StartLayoutUpload(fs::Dir repository,
                                                              std::stop_token stop);

}  // namespace cachewarm::bundle
