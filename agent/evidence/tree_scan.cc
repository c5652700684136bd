// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/tree_scan.h"

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

absl::Status ScanTree(const fs::Dir& root, const std::string& path, const ScanLimits& limits,
                      const ScanVisitor& visitor) {
  absl::Status status;
  const bool wanted =
      path.empty() ? visitor.directory("", root.fd()) : Enter(root, path, visitor, status);
  if (!wanted) {
    return status;
  }
  const fs::WalkLimits walk{.entries_max = limits.entries_max, .depth_max = limits.depth_max};
  const absl::Status walked = fs::Walk(root, path, walk, [&](const fs::WalkEntry& entry) {
    const std::string below = path.empty() ? entry.path : fmt::format("{}/{}", path, entry.path);
    if (entry.stat.type == fs::FileType::kFile) {
      visitor.file(below);
    } else if (entry.stat.type == fs::FileType::kDirectory) {
      return Enter(root, below, visitor, status) ? fs::WalkNext::kContinue
                                                 : fs::WalkNext::kSkipDirectory;
    }
    return fs::WalkNext::kContinue;
  });
  status.Update(Gone(walked) ? absl::OkStatus() : walked);
  return status;
}

}  // namespace cachewarm::agent
