// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "agent/sync/inventory.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Scans the root. Reads names, links and small records, but not the files of the trees; takes about
// 20 us per mount. Ignores unknown names. Errors: RESOURCE_EXHAUSTED above 100,000 names.
absl::StatusOr<Inventory> ScanInventory(const fs::Dir& root);

// Scans one mount. Returns nullopt if its path does not exist.
absl::StatusOr<std::optional<Link>> ScanLink(const fs::Dir& root, const Mount& mount);

}  // namespace cachewarm::agent
