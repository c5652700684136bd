// SPDX-License-Identifier: Apache-2.0
#include "cli/collect.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/capture/bundle_parts.h"
#include "lib/capture/tree_look.h"

namespace cachewarm::cli {

absl::StatusOr<Collection> CollectTree(const fs::Dir& tree, const caches::CacheTable& table) {
  CW_ASSIGN_OR_RETURN(capture::TreeLook look, capture::LookAtTree(tree, table));
  const size_t candidates = look.files.size();
  Collection collection;
  CW_ASSIGN_OR_RETURN(collection.selection,
                      capture::SelectFiles(std::move(look.files), {.tree = tree}));
  collection.files =
      capture::PackFilesOf(collection.selection, {.tree = tree, .against_writers = false});
  collection.left_behind = std::move(look.left_behind);
  const size_t useless =
      candidates - collection.selection.files.size() - collection.selection.torn.size();
  if (useless > 0) {
    collection.left_behind["useless without a damaged file"] = static_cast<int64_t>(useless);
  }
  return collection;
}

}  // namespace cachewarm::cli
