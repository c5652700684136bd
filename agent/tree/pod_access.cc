// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/pod_access.h"

#include <fmt/format.h>

#include <cstdint>

#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"

namespace cachewarm::agent {

absl::Status OpenToPods(const fs::Dir& root, const std::string& path, const Mount& mount) {
  if (const int64_t user = RunAsUser(mount.run_as); user >= 0) {
    absl::Status owned = root.SetOwner(path, static_cast<uid_t>(user), static_cast<gid_t>(-1));
    // Ignore a missing CAP_CHOWN: the mode alone lets the pod write.
    if (!owned.ok() && !absl::IsPermissionDenied(owned)) {
      return owned;
    }
  }
  return root.SetMode(path, kTreeMode);
}

absl::Status MakeFolders(const fs::Dir& root, const Mount& mount, const std::string& tree,
                         const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const std::string path = fmt::format("{}/{}", tree, folder);
    absl::Status made = root.MakeDir(path, kTreeMode);
    if (!made.ok() && !absl::IsAlreadyExists(made)) {
      return made;
    }
    // Keep a file or link that a pod created under this name. Correct the mode of an existing
    // directory: an earlier call may have been killed before it set the mode.
    CW_ASSIGN_OR_RETURN(const fs::FileStat found, root.Stat(path));
    if (found.type == fs::FileType::kDirectory && (made.ok() || found.mode != kTreeMode)) {
      CW_RETURN_IF_ERROR(OpenToPods(root, path, mount));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<fs::FileStat> SetPodOwner(const fs::Fd& file, const Mount& mount) {
  if (const int64_t user = RunAsUser(mount.run_as); user >= 0) {
    const absl::Status owned =
        fs::SetFileOwner(file, static_cast<uid_t>(user), static_cast<gid_t>(-1));
    if (!owned.ok() && !absl::IsPermissionDenied(owned)) {
      return owned;
    }
  }
  return fs::StatFile(file);
}

bool HasPodOwner(const fs::FileStat& stat, const Mount& mount) {
  const int64_t user = RunAsUser(mount.run_as);
  return user < 0 || static_cast<int64_t>(stat.uid) == user;
}

}  // namespace cachewarm::agent
