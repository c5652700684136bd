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

// A file that grows in .uploads/ of a repository and is then renamed to its place: nobody ever sees
// a part of it there. It is locked while its writer lives; those that nobody has locked are removed
// by the next Start. Destroyed without MoveTo, it is gone.
class UploadFile {
 public:
  static absl::StatusOr<UploadFile> Start(const fs::Dir& repository);
  UploadFile(UploadFile&& other) noexcept;
  UploadFile& operator=(UploadFile&&) = delete;
  ~UploadFile();

  absl::Status Write(std::string_view bytes);
  // Replaces what `path` names, durably. Once.
  absl::Status MoveTo(const std::string& path, mode_t mode);

 private:
  UploadFile(const fs::Dir& repository, std::string name, fs::Fd file);

  const fs::Dir* repository_;
  std::string name_;  // empty once it is in its place
  fs::Fd file_;
  int64_t bytes_ = 0;
  int64_t flushed_bytes_ = 0;  // of them, those that the kernel was told to write to the disk
};

// A blob that grows likewise, on its way to blobs/sha256/.
absl::StatusOr<std::unique_ptr<BlobUpload>> StartLayoutUpload(fs::Dir repository,
                                                              std::stop_token stop);

}  // namespace cachewarm::bundle
