// SPDX-License-Identifier: Apache-2.0
#include "cli/run/coverage.h"

#include <algorithm>

namespace cachewarm::cli {

std::set<std::string> ReplacedFiles(const TreeSnapshot& before, const TreeSnapshot& after) {
  std::set<std::string> replaced;
  for (const auto& [path, state] : after) {
    const auto found = before.find(path);
    if (found != before.end() && found->second != state) {
      replaced.insert(path);
    }
  }
  return replaced;
}

bool Covers(const bundle::Config& bundle, const std::vector<capture::TreeFile>& files,
            const std::set<std::string>& replaced) {
  const std::vector<bundle::Entry>& entries = bundle.entries;
  return std::all_of(files.begin(), files.end(), [&](const capture::TreeFile& file) {
    const auto found =
        std::lower_bound(entries.begin(), entries.end(), file.path,
                         [](const auto& entry, const auto& path) { return entry.path < path; });
    return found != entries.end() && found->path == file.path && !replaced.contains(file.path);
  });
}

bool HasMore(const bundle::Config& bundle, const std::vector<capture::TreeFile>& files) {
  return std::any_of(bundle.entries.begin(), bundle.entries.end(), [&](const auto& entry) {
    const auto found =
        std::lower_bound(files.begin(), files.end(), entry.path,
                         [](const auto& file, const auto& path) { return file.path < path; });
    return found == files.end() || found->path != entry.path;
  });
}

}  // namespace cachewarm::cli
