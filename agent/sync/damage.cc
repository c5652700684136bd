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
    return "has other bytes than its bundle says, and nobody wrote it";
  }
  if (change.same_file && !change.writable) {
    return "was overwritten in place, which no engine does with files of its kind";
  }
  return "was replaced by a file that is truncated";
}

std::string DescribeDamage(const DamagedTree& tree) {
  return tree.path.empty() ? "what was damaged is not known any more"
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
