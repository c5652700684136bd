// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/tree_listing.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/capture/left_behind.h"
#include "lib/fs/tree.h"

namespace cachewarm::capture {
namespace {

constexpr std::string_view kOwnDirectory = ".cachewarm";

bool IsUnnamed(caches::Skip skip) {
  return skip == caches::Skip::kUnknownCache || skip == caches::Skip::kNotAllowed ||
         skip == caches::Skip::kUnsafePath;
}

// Returns true if the file matches no cache kind at all, whether or not the table selects that
// kind.
bool IsUnnamed(const caches::Placement& placement, std::string_view path) {
  return IsUnnamed(placement.skip) &&
         IsUnnamed(caches::CacheTable::AllPresets().Classify(path).skip);
}

}  // namespace

absl::StatusOr<TreeListing> ListTree(const fs::Dir& tree, const caches::CacheTable& table) {
  TreeListing listing;
  LeftBehindSum unnamed;
  CW_RETURN_IF_ERROR(fs::Walk(tree, "", {}, [&](const fs::WalkEntry& entry) {
    if (entry.stat.type == fs::FileType::kDirectory) {
      return entry.path == kOwnDirectory ? fs::WalkNext::kSkipDirectory : fs::WalkNext::kContinue;
    }
    if (entry.stat.type != fs::FileType::kFile) {
      ++listing.left_behind["not a regular file"];
      return fs::WalkNext::kContinue;
    }
    caches::Placement placement = table.Classify(entry.path);
    if (placement.carried()) {
      listing.files.push_back({entry.path, std::move(placement), entry.stat});
    } else {
      ++listing.left_behind[std::string(caches::SkipName(placement.skip))];
      if (IsUnnamed(placement, entry.path)) {
        unnamed.Add(entry.path, entry.stat.bytes);
      }
    }
    return fs::WalkNext::kContinue;
  }));
  listing.unnamed = unnamed.Take();
  // Sort, because the walk orders by directory and not by whole paths ("a.b" sorts before "a/b").
  std::sort(listing.files.begin(), listing.files.end(),
            [](const TreeFile& a, const TreeFile& b) { return a.path < b.path; });
  return listing;
}

}  // namespace cachewarm::capture
