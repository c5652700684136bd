// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/retire.h"

#include <fmt/format.h>

#include <set>
#include <utility>

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

}  // namespace

std::string NodeRecord(const fs::Dir& root, const std::string& gpu_type,
                       const std::string& cpu_class) {
  std::string type = gpu_type;
  if (type.empty()) {
    const absl::StatusOr<std::string> known = fs::ReadFile(root, kNodeRecord, kNodeBytesMax);
    type = known.ok() ? known->substr(0, known->find('\n')) : std::string();
  }
  return type.empty() ? std::string() : fmt::format("{}\n{}\n", type, cpu_class);
}

absl::StatusOr<int> RetireForeignTrees(const fs::Dir& root, const std::string& node,
                                       const PrepareOptions& options) {
  const absl::StatusOr<std::string> known = fs::ReadFile(root, kNodeRecord, kNodeBytesMax);
  if (known.ok() && *known == node) {
    return 0;
  }
  CW_ASSIGN_OR_RETURN(const Inventory inventory, ScanInventory(root));
  if (absl::IsNotFound(known.status()) && inventory.generations.empty()) {
    CW_RETURN_IF_ERROR(fs::WriteFileAtomic(root, kNodeRecord, node, 0600));
    return 0;
  }
  std::set<std::string> fresh;
  for (const auto& [mount, link] : inventory.links) {
    // A directory made by kubelet may also contain old code: convert it into a tree, then replace
    // it.
    if (link.state == LinkState::kDirectory) {
      CW_RETURN_IF_ERROR(PrepareMount(root, mount, options));
    }
    CW_ASSIGN_OR_RETURN(std::string id, ActivateFreshTree(root, mount, options));
    fresh.insert(std::move(id));
  }
  CW_ASSIGN_OR_RETURN(const Inventory now, ScanInventory(root));
  int retired = 0;
  for (const auto& [id, generation] : now.generations) {
    if (!fresh.contains(id)) {
      CW_RETURN_IF_ERROR(Retire(root, id));
      ++retired;
    }
  }
  CW_RETURN_IF_ERROR(root.Sync(kGenerations));
  CW_RETURN_IF_ERROR(fs::WriteFileAtomic(root, kNodeRecord, node, 0600));
  return retired;
}

}  // namespace cachewarm::agent
