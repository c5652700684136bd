// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/retire.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "agent/sync/tree_names.h"
#include "agent/tree/durable.h"
#include "agent/tree/evict.h"
#include "agent/tree/pod_access.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"

namespace cachewarm::agent {
namespace {

constexpr std::string_view kNodeRecord = ".state/node";
constexpr int64_t kNodeBytesMax = 4096;
constexpr int kRetiredMax = 10'000;

absl::Status Retire(const fs::Dir& root, const std::string& id) {
  for (int number = 0; number < kRetiredMax; ++number) {
    absl::Status renamed =
        root.RenameNew(GenerationPath(id), GenerationPath(RetiredName(id, number)));
    if (!absl::IsAlreadyExists(renamed)) {
      return renamed;
    }
  }
  return absl::ResourceExhaustedError(
      fmt::format("too many retired trees of {}; remove .gen/retired-* in the root directory", id));
}

// The record of the last user: GPU type, CPU class and boot id, a line each. Older agents wrote no
// boot id.
absl::StatusOr<RootUser> ReadUser(const fs::Dir& root) {
  CW_ASSIGN_OR_RETURN(const std::string text, fs::ReadFile(root, kNodeRecord, kNodeBytesMax));
  const size_t gpu_end = text.find('\n');
  const size_t end = gpu_end == std::string::npos ? gpu_end : text.find('\n', gpu_end + 1);
  if (end == std::string::npos) {
    return RootUser{.node = text};
  }
  const std::string rest = text.substr(end + 1);
  return RootUser{.node = text.substr(0, end + 1), .boot_id = rest.substr(0, rest.find('\n'))};
}

absl::Status WriteUser(const fs::Dir& root, const std::string& node, const std::string& boot_id) {
  return fs::WriteFileAtomic(root, kNodeRecord,
                             boot_id.empty() ? node : fmt::format("{}{}\n", node, boot_id), 0600);
}

// Converts directories that kubelet made into trees: they may contain old code too.
absl::Status AdoptDirectories(const fs::Dir& root, const Inventory& inventory,
                              const PrepareOptions& options) {
  for (const auto& [mount, link] : inventory.links) {
    if (link.state == LinkState::kDirectory) {
      CW_RETURN_IF_ERROR(PrepareMount(root, mount, options));
    }
  }
  return absl::OkStatus();
}

// Selects the trees to retire. Called with an empty generation for a link that leads to no tree.
using Retired = std::function<bool(const std::string& generation)>;

// Empties each tree to retire that a container of this boot can have mounted.
absl::Status EmptyLinkedTrees(const fs::Dir& root, const Inventory& inventory,
                              const Retired& is_retired, const PrepareOptions& options) {
  for (const auto& [mount, link] : inventory.links) {
    if (!link.generation.empty() && is_retired(link.generation)) {
      const std::string tree = GenerationPath(link.generation);
      CW_RETURN_IF_ERROR(MoveContentToTrash(root, tree));
      CW_RETURN_IF_ERROR(MakeFolders(root, mount, tree, options.folders));
    }
  }
  return absl::OkStatus();
}

// Flips links away from the trees to retire, and renames those. Returns their number.
absl::StatusOr<int> RetireTrees(const fs::Dir& root, const Retired& is_retired,
                                const PrepareOptions& options) {
  CW_ASSIGN_OR_RETURN(Inventory inventory, ScanInventory(root));
  std::set<std::string> fresh;
  for (const auto& [mount, link] : inventory.links) {
    if (is_retired(link.generation)) {
      CW_ASSIGN_OR_RETURN(std::string id, ActivateFreshTree(root, mount, options));
      fresh.insert(std::move(id));
    }
  }
  CW_ASSIGN_OR_RETURN(inventory, ScanInventory(root));
  int retired = 0;
  for (const auto& [id, generation] : inventory.generations) {
    if (!fresh.contains(id) && is_retired(id)) {
      CW_RETURN_IF_ERROR(RemoveDurableMark(root, id));
      CW_RETURN_IF_ERROR(Retire(root, id));
      ++retired;
    }
  }
  CW_RETURN_IF_ERROR(root.Sync(kGenerations));
  return retired;
}

// Retires the trees of bundles that were not completely on the disk when the machine stopped.
absl::StatusOr<int> RetireUnsyncedTrees(const fs::Dir& root, const PrepareOptions& options) {
  const Retired is_unsynced = [&](const std::string& id) {
    return IsGenerationId(id) && !IsColdId(id) && !IsDurable(root, id);
  };
  CW_ASSIGN_OR_RETURN(const Inventory inventory, ScanInventory(root));
  if (std::none_of(inventory.generations.begin(), inventory.generations.end(),
                   [&](const auto& each) { return is_unsynced(each.first); })) {
    return 0;
  }
  CW_RETURN_IF_ERROR(EmptyLinkedTrees(root, inventory, is_unsynced, options));
  return RetireTrees(root, is_unsynced, options);
}

}  // namespace

std::string NodeRecord(const fs::Dir& root, const std::string& gpu_type,
                       const std::string& cpu_class) {
  std::string type = gpu_type;
  if (type.empty()) {
    const absl::StatusOr<RootUser> known = ReadUser(root);
    type = known.ok() ? known->node.substr(0, known->node.find('\n')) : std::string();
  }
  return type.empty() ? std::string() : fmt::format("{}\n{}\n", type, cpu_class);
}

bool IsNewBoot(const fs::Dir& root, const std::string& boot_id) {
  const absl::StatusOr<RootUser> known = ReadUser(root);
  return known.ok() && !known->boot_id.empty() && !boot_id.empty() && known->boot_id != boot_id;
}

absl::StatusOr<int> RetireForeignTrees(const fs::Dir& root, const RootUser& user,
                                       const PrepareOptions& options) {
  const absl::StatusOr<RootUser> known = ReadUser(root);
  const bool is_rebooted = IsNewBoot(root, user.boot_id);
  const std::string boot_before = known.ok() ? known->boot_id : std::string();
  const std::string boot_id =
      user.is_gpu_known && !user.boot_id.empty() ? user.boot_id : boot_before;
  if (known.ok() && known->node == user.node) {
    int retired = 0;
    if (is_rebooted) {
      CW_ASSIGN_OR_RETURN(retired, RetireUnsyncedTrees(root, options));
    }
    CW_RETURN_IF_ERROR(boot_id == boot_before ? absl::OkStatus()
                                              : WriteUser(root, user.node, boot_id));
    return retired;
  }
  CW_ASSIGN_OR_RETURN(Inventory inventory, ScanInventory(root));
  if (absl::IsNotFound(known.status()) && inventory.generations.empty()) {
    CW_RETURN_IF_ERROR(WriteUser(root, user.node, boot_id));
    return 0;
  }
  const Retired is_retired = [](const std::string&) { return true; };
  CW_RETURN_IF_ERROR(AdoptDirectories(root, inventory, options));
  if (is_rebooted) {
    CW_ASSIGN_OR_RETURN(inventory, ScanInventory(root));
    CW_RETURN_IF_ERROR(EmptyLinkedTrees(root, inventory, is_retired, options));
  }
  CW_ASSIGN_OR_RETURN(const int retired, RetireTrees(root, is_retired, options));
  CW_RETURN_IF_ERROR(WriteUser(root, user.node, boot_id));
  return retired;
}

}  // namespace cachewarm::agent
