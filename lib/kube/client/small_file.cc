// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/small_file.h"

#include "lib/base/status.h"
#include "lib/fs/file.h"

namespace cachewarm::kube {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max) {
  CW_ASSIGN_OR_RETURN(std::string text, fs::ReadNamedFile(path, static_cast<int64_t>(bytes_max)));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

}  // namespace cachewarm::kube
