// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/tree_scan.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

bool Gone(const absl::Status& status) {
  return status.code() == absl::StatusCode::kNotFound ||
         status.code() == absl::StatusCode::kPermissionDenied ||
         status.code() == absl::StatusCode::kInvalidArgument;
}

// Opens and visits one directory. Returns true if its entries are to be visited too.
bool Enter(const fs::Dir& root, const std::string& path, const ScanVisitor& visitor,
           absl::Status& status) {
  absl::StatusOr<fs::Dir> directory = root.OpenDir(path);
  if (!directory.ok()) {
    // Skip a directory that disappeared or that a pod replaced with a link during the scan.
    status.Update(Gone(directory.status()) ? absl::OkStatus() : directory.status());
    return false;
  }
  return visitor.directory(path, directory->fd());
}

}  // namespace

ScanResult ScanTree(const fs::Dir& root, const std::string& path, const ScanLimits& limits,
                    const ScanVisitor& visitor) {
  ScanResult result{.status = {}, .names = 1};
  const bool wanted =
      path.empty() ? visitor.directory("", root.fd()) : Enter(root, path, visitor, result.status);
  if (!wanted) {
    return result;
  }
  const fs::WalkLimits walk{.entries_max = limits.entries_max,
                            .name_bytes_max = limits.name_bytes_max,
                            .depth_max = limits.depth_max};
  const absl::Status walked = fs::Walk(root, path, walk, [&](const fs::WalkEntry& entry) {
    ++result.names;
    const std::string below = path.empty() ? entry.path : fmt::format("{}/{}", path, entry.path);
    if (entry.stat.type == fs::FileType::kFile) {
      visitor.file(below);
    } else if (entry.stat.type == fs::FileType::kDirectory) {
      return Enter(root, below, visitor, result.status) ? fs::WalkNext::kContinue
                                                        : fs::WalkNext::kSkipDirectory;
    }
    return fs::WalkNext::kContinue;
  });
  if (absl::IsResourceExhausted(walked)) {
    // The names of a directory that exceeds the limit were read without being visited.
    result.names = std::max(result.names, limits.entries_max);
  }
  result.status.Update(Gone(walked) ? absl::OkStatus() : walked);
  return result;
}

}  // namespace cachewarm::agent
