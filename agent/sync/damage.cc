// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/damage.h"

#include <fmt/format.h>

#include <algorithm>

namespace cachewarm::agent {

FileState EvaluateFile(const FileChange& change) {
  if (change.right) {
    return FileState::kIntact;
  }
  const bool by_engine = !change.same_file || (change.written && change.writable);
  return by_engine && !change.truncated ? FileState::kModifiedByEngine : FileState::kDamaged;
}

std::string_view DescribeDamage(const FileChange& change) {
  if (change.same_file && !change.written) {
    return "does not match its bundle, although no process wrote it";
  }
  if (change.same_file && !change.writable) {
    return "was modified in place; no compiler does that to this file type";
  }
  return "was replaced by a truncated file";
}

std::string DescribeDamage(const DamagedTree& tree) {
  return tree.path.empty() ? "the damage record cannot be read"
                           : fmt::format("{}: {}", tree.path, tree.message);
}

bool IsIndexInconsistent(const DamagedTree& found,
                         const std::map<std::string, DamagedTree>& earlier) {
  return found.untouched && std::any_of(earlier.begin(), earlier.end(), [&](const auto& each) {
           const DamagedTree& other = each.second;
           return other.untouched && other.path == found.path && other.digest == found.digest &&
                  other.inode != found.inode;
         });
}

}  // namespace cachewarm::agent
