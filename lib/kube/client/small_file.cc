// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/small_file.h"

#include <fstream>

#include "fmt/format.h"

namespace cachewarm::kube {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max) {
  std::ifstream file(path, std::ios::binary);
  std::string text(bytes_max + 1, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && !file.eof()) {
    return absl::NotFoundError(fmt::format("cannot read {}", path));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > bytes_max) {
    return absl::InvalidArgumentError(fmt::format("{} is larger than {} bytes", path, bytes_max));
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

}  // namespace cachewarm::kube
