// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/journal.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "agent/tree/layout.h"
#include "agent/tree/quarantine.h"
#include "agent/tree/records.h"
#include "agent/tree/scan.h"
#include "lib/base/status.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

absl::Status RemoveOrphanRecords(const fs::Dir& root, const Inventory& inventory) {
  std::vector<std::string> orphans;
  CW_RETURN_IF_ERROR(fs::Walk(root, kGenerationRecords, {}, [&](const fs::WalkEntry& entry) {
    const std::string id = entry.path.substr(0, entry.path.find('.'));
    if (!inventory.generations.contains(id)) {
      orphans.push_back(fmt::format("{}/{}", kGenerationRecords, entry.path));
    }
    return fs::WalkNext::kSkipDirectory;
  }));
  for (const std::string& path : orphans) {
    CW_RETURN_IF_ERROR(root.Remove(path));
  }
  return absl::OkStatus();
}

// Removes damage records of trees that no longer exist: a new tree of the same name would otherwise
// count as damaged.
absl::Status RemoveStaleDamageRecords(const fs::Dir& root, const Inventory& inventory) {
  for (const auto& [id, tree] : inventory.damaged) {
    if (!inventory.generations.contains(id)) {
      CW_RETURN_IF_ERROR(RemoveDamagedTree(root, id));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RepairJournal(const fs::Dir& root, WallTime now) {
  CW_ASSIGN_OR_RETURN(const Inventory inventory, ScanInventory(root));
  for (const auto& [mount, link] : inventory.links) {
    if (!link.generation.empty()) {
      CW_RETURN_IF_ERROR(RepairActivations(root, mount, link.generation, now));
    }
  }
  CW_RETURN_IF_ERROR(RemoveStaleDamageRecords(root, inventory));
  return RemoveOrphanRecords(root, inventory);
}

}  // namespace cachewarm::agent
