// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/tree_directories.h"

#include <fmt/format.h>

#include <functional>
#include <set>

#include "agent/tree/pod_access.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"

namespace cachewarm::agent {

absl::Status OpenDirectoriesToPods(const fs::Dir& root, const std::string& tree, const Mount& mount,
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
