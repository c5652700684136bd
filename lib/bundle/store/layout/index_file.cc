// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/layout/index_file.h"

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/store/layout/layout_upload.h"
#include "lib/fs/file.h"

namespace cachewarm::bundle {
namespace {

constexpr char kIndexLock[] = ".index.lock";
constexpr mode_t kFileMode = 0644;

}  // namespace

std::string BlobPath(const Digest& digest) {
  return fmt::format("{}/{}", kBlobs, digest.hex());
}

absl::StatusOr<fs::Fd> LockIndex(const fs::Dir& repository, const fs::LockWait& wait) {
  return fs::Lock(repository, kIndexLock, wait);
}

absl::StatusOr<std::vector<IndexItem>> ReadIndex(const fs::Dir& repository) {
  const auto text = fs::ReadFile(repository, kIndex, kIndexBytesMax);
  if (absl::IsNotFound(text.status())) {
    return std::vector<IndexItem>();
  }
  CW_RETURN_IF_ERROR(text.status());
  auto items = ParseIndex(*text);
  if (!items.ok()) {
    return Annotate(items.status(), repository.name());
  }
  return items;
}

absl::Status ReplaceIndex(const fs::Dir& repository, const std::vector<IndexItem>& items) {
  CW_ASSIGN_OR_RETURN(const std::string text, WriteIndex(items));
  return ReplaceFile(repository, kIndex, text);
}

absl::Status ReplaceFile(const fs::Dir& repository, const char* path, std::string_view bytes) {
  CW_ASSIGN_OR_RETURN(UploadFile file, UploadFile::Start(repository));
  CW_RETURN_IF_ERROR(file.Write(bytes));
  return file.MoveTo(path, kFileMode);
}

}  // namespace cachewarm::bundle
