// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/scan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

constexpr fs::WalkLimits kScanLimits{.entries_max = 100'000, .depth_max = 8};
constexpr size_t kMountParts = 4;

std::vector<std::string> Parts(std::string_view path) {
  std::vector<std::string> parts;
  while (true) {
    const size_t slash = path.find('/');
    parts.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) {
      return parts;
    }
    path.remove_prefix(slash + 1);
  }
}

// Reads the link of a mount, given the history of the mount.
absl::StatusOr<Link> ReadLinkState(const fs::Dir& root, const Mount& mount, fs::FileType type,
                                   const std::vector<Activation>& past) {
  if (type == fs::FileType::kDirectory) {
    return Link{.state = LinkState::kDirectory};
  }
  if (type != fs::FileType::kSymlink) {
    return Link{.state = LinkState::kBroken};
  }
  const absl::StatusOr<std::string> target = root.ReadLink(MountPath(mount));
  const std::string generation = target.ok() ? TargetGeneration(*target) : std::string();
  if (generation.empty()) {
    return Link{.state = LinkState::kBroken};
  }
  const absl::StatusOr<fs::FileStat> tree = root.Stat(GenerationPath(generation));
  if (!tree.ok() && !absl::IsNotFound(tree.status())) {
    return tree.status();
  }
  if (!tree.ok() || tree->type != fs::FileType::kDirectory) {
    return Link{.state = LinkState::kBroken};
  }
  const bool is_known = !past.empty() && past.back().generation == generation;
  return Link{.state = tree->mode == kTreeMode ? LinkState::kActive : LinkState::kUnusable,
              .generation = generation,
              .renew = is_known ? past.back().renew : 0};
}

// Sets the owner of each tree of a history, and when the link of its mount was switched to another
// tree. A clock that was set back must not make that time earlier than the activation itself, so it
// is the latest recorded time until the switch.
void ReadHistory(const MountHistory& history, const std::string& linked, Inventory& inventory) {
  WallTime latest{};
  const auto& activations = history.activations;
  for (size_t i = 0; i < activations.size(); ++i) {
    const std::string& id = activations[i].generation;
    latest = std::max(latest, activations[i].at);
    WallTime unlinked{};
    if (i + 1 < activations.size() && id != linked) {
      unlinked = std::max(latest, activations[i + 1].at);
    }
    const auto set = [&](Generation& tree) {
      tree.warmup_uid = history.warmup_uid;
      tree.run_as = history.run_as;
      tree.unlinked_time = unlinked;
    };
    if (const auto found = inventory.generations.find(id); found != inventory.generations.end()) {
      set(found->second);
    }
    for (auto& [name, tree] : inventory.retired) {
      if (RetiredGeneration(name) == id) {
        set(tree);
      }
    }
  }
}

// Sets the unlink time of trees that a full history no longer lists: they were unlinked before its
// oldest entry.
void ReadDropped(const MountHistory& history, Inventory& inventory) {
  if (history.activations.size() < kActivationsMax) {
    return;
  }
  for (auto& [id, tree] : inventory.generations) {
    if (tree.warmup_uid != history.warmup_uid || tree.run_as != history.run_as) {
      continue;
    }
    if (std::none_of(history.activations.begin(), history.activations.end(),
                     [&id = id](const Activation& each) { return each.generation == id; })) {
      tree.unlinked_time = history.activations.front().at;
    }
  }
}

// Reads also the histories of mounts whose paths are gone.
void ReadOwners(const fs::Dir& root, std::vector<MountHistory> histories, Inventory& inventory) {
  std::map<std::pair<std::string, std::string>, std::string> linked;
  std::set<std::pair<std::string, std::string>> known;
  for (const auto& [mount, link] : inventory.links) {
    linked[{mount.uid, mount.run_as}] = link.generation;
    known.insert({mount.uid, mount.run_as});
  }
  std::vector<MountHistory> others = ReadHistories(root, known);
  std::move(others.begin(), others.end(), std::back_inserter(histories));
  for (const MountHistory& history : histories) {
    const auto link = linked.find({history.warmup_uid, history.run_as});
    ReadHistory(history, link == linked.end() ? std::string() : link->second, inventory);
    ReadDropped(history, inventory);
  }
}

bool IsSameFile(const fs::FileStat& a, const fs::FileStat& b) {
  return a.device == b.device && a.inode == b.inode && a.bytes == b.bytes &&
         a.mtime_ns == b.mtime_ns && a.ctime_ns == b.ctime_ns;
}

std::vector<Activation> CachedActivations(const fs::Dir& root, const Mount& mount,
                                          ScanCache& cache) {
  const std::string path = LinkRecordPath(mount);
  const absl::StatusOr<fs::FileStat> file = root.Stat(path);
  if (!file.ok()) {
    return {};
  }
  ScanCache::History& known = cache.histories[path];
  if (!IsSameFile(known.file, *file)) {
    known = {.file = *file, .activations = ReadActivations(root, mount)};
  }
  return known.activations;
}

Generation ReadGeneration(const fs::Dir& root, const std::string& id) {
  absl::StatusOr<GenerationRecord> record = ReadGenerationRecord(root, id);
  if (!record.ok()) {
    return {};
  }
  Generation generation{.digests = std::move(record->digests),
                        .bytes = record->bytes,
                        .fetch_seconds = record->fetch_seconds,
                        .usage = record->usage,
                        .warmup_uid = record->mount.uid,
                        .run_as = record->mount.run_as};
  if (generation.usage.bytes == 0) {
    generation.usage = {.bytes = record->bytes, .inodes = record->files};
  }
  return generation;
}

Generation CachedGeneration(const fs::Dir& root, const std::string& id, ScanCache& cache) {
  const absl::StatusOr<fs::FileStat> file = root.Stat(GenerationRecordPath(id));
  if (!file.ok()) {
    return {};
  }
  ScanCache::Tree& known = cache.trees[id];
  if (!IsSameFile(known.file, *file)) {
    known = {.file = *file, .generation = ReadGeneration(root, id)};
  }
  return known.generation;
}

void ForgetGone(const Inventory& inventory, ScanCache& cache) {
  std::set<std::string> histories;
  for (const auto& [mount, link] : inventory.links) {
    histories.insert(LinkRecordPath(mount));
  }
  std::erase_if(cache.histories, [&](const auto& each) { return !histories.contains(each.first); });
  std::erase_if(cache.trees,
                [&](const auto& each) { return !inventory.generations.contains(each.first); });
}

// Returns the histories of the mounts that exist.
absl::StatusOr<std::vector<MountHistory>> ScanMounts(const fs::Dir& root, Inventory& inventory,
                                                     ScanCache& cache) {
  std::vector<MountHistory> histories;
  absl::Status broken;
  CW_RETURN_IF_ERROR(fs::Walk(root, "", kScanLimits, [&](const fs::WalkEntry& entry) {
    if (entry.path.starts_with('.')) {
      return fs::WalkNext::kSkipDirectory;
    }
    const std::vector<std::string> parts = Parts(entry.path);
    if (parts.size() < kMountParts) {
      return fs::WalkNext::kContinue;
    }
    const Mount mount{parts[0], parts[1], parts[2], parts[3]};
    if (CheckMount(mount).ok()) {
      histories.push_back({mount.uid, mount.run_as, CachedActivations(root, mount, cache)});
      absl::StatusOr<Link> link =
          ReadLinkState(root, mount, entry.stat.type, histories.back().activations);
      if (!link.ok()) {
        broken = link.status();
        return fs::WalkNext::kStop;
      }
      inventory.links[mount] = *std::move(link);
    }
    return fs::WalkNext::kSkipDirectory;
  }));
  CW_RETURN_IF_ERROR(broken);
  return histories;
}

absl::Status ScanNames(const fs::Dir& root, std::string_view folder,
                       const std::function<void(const fs::WalkEntry&)>& visit) {
  return fs::Walk(root, folder, kScanLimits, [&](const fs::WalkEntry& entry) {
    visit(entry);
    return fs::WalkNext::kSkipDirectory;
  });
}

}  // namespace

absl::StatusOr<Inventory> ScanInventory(const fs::Dir& root) {
  ScanCache cache;
  return ScanInventory(root, cache);
}

absl::StatusOr<Inventory> ScanInventory(const fs::Dir& root, ScanCache& cache) {
  Inventory inventory;
  CW_ASSIGN_OR_RETURN(std::vector<MountHistory> histories, ScanMounts(root, inventory, cache));
  CW_RETURN_IF_ERROR(ScanNames(root, kGenerations, [&](const fs::WalkEntry& entry) {
    if (entry.stat.type == fs::FileType::kDirectory && IsGenerationId(entry.path)) {
      inventory.generations[entry.path];
    } else if (!RetiredGeneration(entry.path).empty()) {
      inventory.retired[entry.path];
    }
  }));
  CW_RETURN_IF_ERROR(ScanNames(
      root, kStaging, [&](const fs::WalkEntry& entry) { inventory.staging.insert(entry.path); }));
  CW_ASSIGN_OR_RETURN(inventory.damaged, ReadDamagedTrees(root));
  for (auto& [id, generation] : inventory.generations) {
    generation = CachedGeneration(root, id, cache);
  }
  ForgetGone(inventory, cache);
  ReadOwners(root, std::move(histories), inventory);
  return inventory;
}

absl::StatusOr<std::optional<Link>> ScanLink(const fs::Dir& root, const Mount& mount) {
  const absl::StatusOr<fs::FileStat> found = root.Stat(MountPath(mount));
  if (absl::IsNotFound(found.status())) {
    return std::optional<Link>();
  }
  CW_RETURN_IF_ERROR(found.status());
  CW_ASSIGN_OR_RETURN(Link link,
                      ReadLinkState(root, mount, found->type, ReadActivations(root, mount)));
  return std::optional<Link>(std::move(link));
}

}  // namespace cachewarm::agent
