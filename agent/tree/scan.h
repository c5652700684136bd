// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sync/inventory.h"
#include "agent/tree/journal.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// The records that earlier scans have read, each with the state of its file. Most records do not
// change between two scans.
struct ScanCache {
  struct History {
    fs::FileStat file;
    std::vector<Activation> activations;
  };
  struct Tree {
    fs::FileStat file;
    Generation generation;
  };
  std::map<std::string, History> histories;  // by path of the record
  std::map<std::string, Tree> trees;         // by generation
};

// Scans the root. Reads names, links and small records, but not the files of the trees; takes about
// 20 us per mount. Ignores unknown names. Errors: RESOURCE_EXHAUSTED above 100,000 names.
absl::StatusOr<Inventory> ScanInventory(const fs::Dir& root);

// Scans the root likewise, and reads only those records that have changed since the last scan with
// this cache.
absl::StatusOr<Inventory> ScanInventory(const fs::Dir& root, ScanCache& cache);

// Scans one mount. Returns nullopt if its path does not exist.
absl::StatusOr<std::optional<Link>> ScanLink(const fs::Dir& root, const Mount& mount);

}  // namespace cachewarm::agent
