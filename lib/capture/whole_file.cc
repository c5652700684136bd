// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/whole_file.h"

#include "lib/base/status.h"
#include "lib/caches/file_check.h"
#include "lib/fs/file.h"

namespace cachewarm::capture {

absl::StatusOr<std::string> ReadRange(const fs::Fd& file, uint64_t offset, size_t size) {
  std::string bytes(size, '\0');
  size_t filled = 0;
  while (filled < size) {
    CW_ASSIGN_OR_RETURN(const size_t got, fs::ReadAt(file, static_cast<int64_t>(offset + filled),
                                                     bytes.data() + filled, size - filled));
    if (got == 0) {
      break;
    }
    filled += got;
  }
  bytes.resize(filled);
  return bytes;
}

absl::Status CheckWholeFile(const fs::Fd& file, const caches::Placement& placement,
                            const std::string& path, int64_t bytes) {
  return caches::CheckWhole(
      placement, path, static_cast<uint64_t>(bytes),
      [&file](uint64_t offset, size_t size) { return ReadRange(file, offset, size); });
}

}  // namespace cachewarm::capture
