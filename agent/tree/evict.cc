// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/evict.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "agent/sync/tree_names.h"
#include "agent/tree/durable.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

constexpr int kTrashNamesMax = 10'000;
constexpr int64_t kTrashEntriesMax = 100'000;

// Removes the folders above a mount that are empty now. Another mount may use them.
void RemoveParents(const fs::Dir& root, const Mount& mount) {
  for (const std::string& folder :
       {MountParent(mount), fmt::format("{}/{}", mount.ns, mount.name), mount.ns}) {
    if (!root.Remove(folder).ok()) {
      return;
    }
  }
}

absl::Status RemoveLink(const fs::Dir& root, const Mount& mount) {
  absl::Status removed = root.Remove(MountPath(mount));
  if (removed.ok()) {
    removed = root.Sync(MountParent(mount));
  }
  RemoveParents(root, mount);
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

// Removes the history of the tree's mount if nothing else is left of the mount.
absl::Status RemoveUnusedHistory(const fs::Dir& root, const Eviction& eviction) {
  const Mount owner{.uid = eviction.warmup_uid, .run_as = eviction.run_as};
  for (const Activation& activation : ReadActivations(root, owner)) {
    CW_ASSIGN_OR_RETURN(const bool exists, root.Exists(GenerationPath(activation.generation)));
    if (exists) {
      return absl::OkStatus();
    }
  }
  return RemoveHistory(root, eviction.warmup_uid, eviction.run_as);
}

// Calls `make` with names of `path` in the trash until one does not exist yet. Returns that name.
absl::StatusOr<std::string> MakeInTrash(
    const std::string& path, const std::function<absl::Status(const std::string&)>& make) {
  const std::string name = path.substr(path.rfind('/') + 1);
  for (int number = 0; number < kTrashNamesMax; ++number) {
    std::string to = fmt::format("{}/{}.{}", kTrash, name, number);
    const absl::Status made = make(to);
    if (made.ok()) {
      return to;
    }
    if (!absl::IsAlreadyExists(made)) {
      return made;
    }
  }
  return absl::ResourceExhaustedError(fmt::format(
      "{}/{}.* has too many names; the agent's log says why they cannot be removed", kTrash, name));
}

}  // namespace

absl::Status Evict(const fs::Dir& root, const Eviction& eviction) {
  if (eviction.link.has_value()) {
    CW_RETURN_IF_ERROR(RemoveLink(root, *eviction.link));
  }
  if (IsGenerationId(eviction.name)) {
    CW_RETURN_IF_ERROR(RemoveDurableMark(root, eviction.name));
  }
  CW_RETURN_IF_ERROR(MoveToTrash(root, GenerationPath(eviction.name)));
  CW_RETURN_IF_ERROR(root.Sync(kGenerations));
  if (IsGenerationId(eviction.name)) {
    CW_RETURN_IF_ERROR(RemoveGenerationRecords(root, eviction.name));
  }
  return eviction.warmup_uid.empty() ? absl::OkStatus() : RemoveUnusedHistory(root, eviction);
}

absl::Status MoveToTrash(const fs::Dir& root, const std::string& path) {
  const absl::Status moved =
      MakeInTrash(path, [&](const std::string& to) { return root.RenameNew(path, to); }).status();
  return absl::IsNotFound(moved) ? absl::OkStatus() : moved;
}

absl::Status MoveContentToTrash(const fs::Dir& root, const std::string& path) {
  constexpr mode_t kMode = 0700;
  CW_ASSIGN_OR_RETURN(const std::string to, MakeInTrash(path, [&](const std::string& name) {
                        return root.MakeDir(name, kMode);
                      }));
  return fs::MoveContent(root, path, to);
}

absl::StatusOr<bool> EmptyTrash(const fs::Dir& root, int64_t entries_max,
                                const std::stop_token& stop) {
  std::vector<std::string> names;
  CW_RETURN_IF_ERROR(
      fs::Walk(root, kTrash, {.entries_max = kTrashEntriesMax}, [&](const fs::WalkEntry& entry) {
        names.push_back(entry.path);
        return fs::WalkNext::kSkipDirectory;
      }));
  absl::Status first;
  for (const std::string& name : names) {
    if (stop.stop_requested()) {
      break;
    }
    first.Update(fs::RemoveSome(root, fmt::format("{}/{}", kTrash, name), entries_max).status());
  }
  CW_RETURN_IF_ERROR(first);
  return names.empty();
}

absl::Status RemoveEmptyFolders(const fs::Dir& root) {
  constexpr long kUidDepth = 3;
  std::vector<std::string> folders;
  CW_RETURN_IF_ERROR(fs::Walk(root, "", {}, [&](const fs::WalkEntry& entry) {
    const Mount mount{.ns = entry.path.substr(0, entry.path.find('/')),
                      .name = "x",
                      .uid = "x",
                      .run_as = "image"};
    if (!CheckMount(mount).ok()) {
      return fs::WalkNext::kSkipDirectory;  // not made by the agent, for example lost+found
    }
    if (entry.stat.type == fs::FileType::kDirectory) {
      folders.push_back(entry.path);
    }
    const long depth = 1 + std::count(entry.path.begin(), entry.path.end(), '/');
    return depth < kUidDepth ? fs::WalkNext::kContinue : fs::WalkNext::kSkipDirectory;
  }));
  // A folder comes before its content, so the reverse order removes the content first.
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    root.Remove(*folder).IgnoreError();  // not empty
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::agent
