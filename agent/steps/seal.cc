// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/seal.h"

#include <fmt/format.h>

#include <utility>

#include "agent/tree/links.h"
#include "lib/base/status.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

constexpr mode_t kDirectoryMode = 0777;

absl::Status Own(const fs::Dir& root, const std::string& path, const Mount& mount) {
  const int64_t user = RunAsUser(mount.run_as);
  if (user < 0) {
    return absl::OkStatus();
  }
  const absl::Status owned = root.SetOwner(path, static_cast<uid_t>(user), static_cast<gid_t>(-1));
  return absl::IsPermissionDenied(owned) ? absl::OkStatus() : owned;
}

}  // namespace

absl::StatusOr<std::vector<EntryRecord>> SealTree(const fs::Dir& root, const std::string& tree,
                                                  const Mount& mount,
                                                  const caches::CacheTable& table,
                                                  const std::map<std::string, SealEntry>& entries) {
  for (const std::string& folder : table.Directories()) {
    CW_RETURN_IF_ERROR(root.MakeDirs(fmt::format("{}/{}", tree, folder), kDirectoryMode));
  }
  std::vector<EntryRecord> records;
  absl::Status problem;
  const auto seal = [&](const fs::WalkEntry& entry) -> absl::Status {
    const std::string path = fmt::format("{}/{}", tree, entry.path);
    if (entry.stat.type == fs::FileType::kDirectory) {
      return OpenToPods(root, path, mount);
    }
    const auto known = entries.find(entry.path);
    if (entry.stat.type != fs::FileType::kFile || known == entries.end()) {
      return absl::InternalError(fmt::format("{} is in no bundle", path));
    }
    CW_RETURN_IF_ERROR(Own(root, path, mount));
    CW_RETURN_IF_ERROR(root.SetMode(path, table.Classify(entry.path).mode()));
    CW_ASSIGN_OR_RETURN(const fs::FileStat stat, root.Stat(path));
    records.push_back({.path = entry.path,
                       .kind = known->second.kind,
                       .digest = known->second.digest,
                       .bytes = stat.bytes,
                       .inode = stat.inode,
                       .mtime_ns = stat.mtime_ns,
                       .ctime_ns = stat.ctime_ns});
    return absl::OkStatus();
  };
  CW_RETURN_IF_ERROR(fs::Walk(root, tree, {}, [&](const fs::WalkEntry& entry) {
    problem = seal(entry);
    return problem.ok() ? fs::WalkNext::kGoOn : fs::WalkNext::kStop;
  }));
  CW_RETURN_IF_ERROR(problem);
  CW_RETURN_IF_ERROR(OpenToPods(root, tree, mount));
  return records;
}

}  // namespace cachewarm::agent
