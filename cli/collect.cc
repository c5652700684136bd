// SPDX-License-Identifier: Apache-2.0
#include "cli/collect.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/capture/bundle_parts.h"
#include "lib/capture/tree_listing.h"

namespace cachewarm::cli {
namespace {

absl::StatusOr<Collection> Collect(const fs::Dir& tree, capture::TreeListing listing) {
  const size_t candidates = listing.files.size();
  Collection collection;
  CW_ASSIGN_OR_RETURN(collection.selection,
                      capture::SelectFiles(std::move(listing.files), {.tree = tree}));
  collection.files =
      capture::PackFilesOf(collection.selection, {.tree = tree, .detect_writers = false});
  collection.left_behind = std::move(listing.left_behind);
  collection.unnamed = std::move(listing.unnamed);
  const size_t useless =
      candidates - collection.selection.files.size() - collection.selection.truncated.size();
  if (useless > 0) {
    collection.left_behind["unusable because a file that they need is truncated"] =
        static_cast<int64_t>(useless);
  }
  return collection;
}

}  // namespace

absl::StatusOr<Collection> CollectTree(const fs::Dir& tree, const caches::CacheTable& table) {
  CW_ASSIGN_OR_RETURN(capture::TreeListing listing, capture::ListTree(tree, table));
  return Collect(tree, std::move(listing));
}

absl::StatusOr<Collection> CollectTree(const fs::Dir& tree, const caches::CacheTable& table,
                                       const std::set<std::string>& also) {
  CW_ASSIGN_OR_RETURN(capture::TreeListing listing,
                      capture::ListTree(tree, caches::CacheTable::AllPresets()));
  std::erase_if(listing.files, [&](const capture::TreeFile& file) {
    return !table.Classify(file.path).carried() && !also.contains(file.path);
  });
  return Collect(tree, std::move(listing));
}

}  // namespace cachewarm::cli
