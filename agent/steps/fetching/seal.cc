// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/seal.h"

#include <fmt/format.h>

#include <set>

#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"

namespace cachewarm::agent {

absl::StatusOr<fs::FileStat> SealFile(const fs::Fd& file, const Mount& mount) {
  if (const int64_t user = RunAsUser(mount.run_as); user >= 0) {
    const absl::Status owned =
        fs::SetFileOwner(file, static_cast<uid_t>(user), static_cast<gid_t>(-1));
    if (!owned.ok() && !absl::IsPermissionDenied(owned)) {
      return owned;
    }
  }
  return fs::StatFile(file);
}

bool IsOwnedAsWanted(const fs::FileStat& stat, const Mount& mount) {
  const int64_t user = RunAsUser(mount.run_as);
  return user < 0 || static_cast<int64_t>(stat.uid) == user;
}

absl::Status SealDirectories(const fs::Dir& root, const std::string& tree, const Mount& mount,
                             const caches::CacheTable& table,
                             const std::vector<const bundle::Config*>& configs) {
  std::set<std::string, std::less<>> directories;
  for (const std::string& folder : table.Directories()) {
    CW_RETURN_IF_ERROR(root.MakeDirs(fmt::format("{}/{}", tree, folder), kTreeMode));
    directories.insert(folder);
  }
  // All directories already have mode 0777, so only the owner must be set.
  if (RunAsUser(mount.run_as) >= 0) {
    for (const bundle::Config* config : configs) {
      directories.merge(bundle::ImpliedDirectories(config->entries));
    }
    for (const std::string& directory : directories) {
      CW_RETURN_IF_ERROR(OpenToPods(root, fmt::format("{}/{}", tree, directory), mount));
    }
  }
  return OpenToPods(root, tree, mount);
}

}  // namespace cachewarm::agent
