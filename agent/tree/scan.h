// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "agent/sync/inventory.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// What stands below the root. Reads names, links and small records, never the trees: about 20 us a
// mount. Names that are not ours are left out. RESOURCE_EXHAUSTED above 100,000 names.
absl::StatusOr<Inventory> ScanInventory(const fs::Dir& root);

// One mount alone; absent when nothing stands there.
absl::StatusOr<std::optional<Link>> ScanLink(const fs::Dir& root, const Mount& mount);

}  // namespace cachewarm::agent
