// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/sync/tree_names.h"
#include "agent/tree/durable.h"
#include "agent/tree/journal.h"
#include "agent/tree/pod_access.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

constexpr mode_t kFolderMode = 0755;
constexpr int kColdTreesMax = 1000;

// Returns the first unused name of a tree without a bundle (cold id) for `mount`.
absl::StatusOr<std::string> FreeColdId(const fs::Dir& root, const Mount& mount) {
  for (int attempt = 0; attempt < kColdTreesMax; ++attempt) {
    std::string id = ColdId(mount, attempt);
    const absl::StatusOr<fs::FileStat> found = root.Stat(GenerationPath(id));
    // A link at this path is left over from an agent that was killed during Adopt(); the id can be
    // used.
    if (absl::IsNotFound(found.status()) || (found.ok() && found->type == fs::FileType::kSymlink)) {
      return id;
    }
    CW_RETURN_IF_ERROR(found.status());
  }
  return absl::ResourceExhaustedError(fmt::format(
      "{}: {} trees without a bundle exist; in the root directory (--root), remove those "
      "of .gen/cold-* to which no link leads",
      MountPath(mount), kColdTreesMax));
}

absl::StatusOr<std::string> MakeTree(const fs::Dir& root, const Mount& mount, std::string id,
                                     const PrepareOptions& options) {
  const std::string tree = GenerationPath(id);
  if (const absl::StatusOr<fs::FileStat> found = root.Stat(tree);
      found.ok() && found->type == fs::FileType::kSymlink) {
    CW_RETURN_IF_ERROR(root.Remove(tree));
  }
  if (absl::Status made = root.MakeDir(tree, kTreeMode);
      !made.ok() && !absl::IsAlreadyExists(made)) {
    return made;
  }
  CW_RETURN_IF_ERROR(OpenToPods(root, tree, mount));
  CW_RETURN_IF_ERROR(MakeFolders(root, mount, tree, options.folders));
  CW_RETURN_IF_ERROR(root.Sync(kGenerations));
  return id;
}

// Makes a tree without a bundle for a mount that has no link. Always uses the first cold id: if the
// agent is killed before it makes the link, the next call uses the same tree, and no unused tree
// remains.
absl::StatusOr<std::string> MakeColdTree(const fs::Dir& root, const Mount& mount,
                                         const PrepareOptions& options) {
  return MakeTree(root, mount, ColdId(mount, 0), options);
}

// A link to a tree that is not on the disk yet need not be there earlier than the tree:
// MakeDurable() syncs both.
absl::Status Flip(const fs::Dir& root, const Mount& mount, const std::string& generation,
                  const PrepareOptions& options) {
  const bool is_on_disk = IsColdId(generation) || IsDurable(root, generation);
  const fs::Durable durable = is_on_disk ? fs::Durable::kNow : fs::Durable::kOnceAllSynced;
  if (options.before_flip) {
    const std::vector<Activation> past = ReadActivations(root, mount);
    options.before_flip(generation,
                        std::none_of(past.begin(), past.end(), [&](const Activation& each) {
                          return each.generation == generation;
                        }));
  }
  CW_RETURN_IF_ERROR(RecordActivation(
      root, mount, {.generation = generation, .at = options.now, .renew = options.renew}, durable));
  return fs::ReplaceLink(root, MountPath(mount), LinkTarget(generation), durable);
}

// Converts a directory that kubelet made at the path of the mount into a tree. Exchanges the
// directory with a link to it in one step, so a pod that mounted it keeps writing into the same
// directory.
absl::Status Adopt(const fs::Dir& root, const Mount& mount, const PrepareOptions& options) {
  const std::string path = MountPath(mount);
  CW_RETURN_IF_ERROR(OpenToPods(root, path, mount));
  CW_RETURN_IF_ERROR(MakeFolders(root, mount, path, options.folders));
  CW_ASSIGN_OR_RETURN(const std::string id, FreeColdId(root, mount));
  const std::string tree = GenerationPath(id);
  CW_RETURN_IF_ERROR(fs::ReplaceLink(root, tree, LinkTarget(id)));
  // Record the earliest possible time, because it is unknown when a container first mounted the
  // directory.
  CW_RETURN_IF_ERROR(
      RecordActivation(root, mount, {.generation = id, .at = WallTime{}, .renew = options.renew}));
  CW_RETURN_IF_ERROR(root.Exchange(path, tree));
  CW_RETURN_IF_ERROR(root.Sync(kGenerations));
  return root.Sync(MountParent(mount));
}

absl::Status RepairLink(const fs::Dir& root, const Mount& mount, const PrepareOptions& options) {
  const std::vector<Activation> past = ReadActivations(root, mount);
  PrepareOptions same_start = options;
  same_start.renew = past.empty() ? options.renew : past.back().renew;
  for (auto it = past.rbegin(); it != past.rend(); ++it) {
    if (it->renew != same_start.renew) {
      continue;  // the spec requested a fresh tree, because this one may have crashed a pod
    }
    if (IsDamagedTree(root, it->generation)) {
      continue;
    }
    const absl::StatusOr<fs::FileStat> tree = root.Stat(GenerationPath(it->generation));
    if (tree.ok() && tree->type == fs::FileType::kDirectory) {
      return Flip(root, mount, it->generation, same_start);
    }
  }
  return ActivateFreshTree(root, mount, same_start).status();
}

}  // namespace

absl::Status PrepareMount(const fs::Dir& root, const Mount& mount, const PrepareOptions& options) {
  CW_RETURN_IF_ERROR(CheckMount(mount));
  CW_ASSIGN_OR_RETURN(const std::optional<Link> link, ScanLink(root, mount));
  if (!link.has_value()) {
    CW_RETURN_IF_ERROR(root.MakeDirs(MountParent(mount), kFolderMode));
    if (!ReadActivations(root, mount).empty()) {
      return RepairLink(root, mount, options);
    }
    CW_ASSIGN_OR_RETURN(const std::string id, MakeColdTree(root, mount, options));
    return Flip(root, mount, id, options);
  }
  switch (link->state) {
    case LinkState::kDirectory:
      return Adopt(root, mount, options);
    case LinkState::kBroken:
      return RepairLink(root, mount, options);
    case LinkState::kUnusable:
    case LinkState::kActive:
      CW_RETURN_IF_ERROR(OpenToPods(root, GenerationPath(link->generation), mount));
      return RepairActivations(root, mount, link->generation, options.now);
  }
  return absl::OkStatus();
}

absl::Status ActivateGeneration(const fs::Dir& root, const Mount& mount,
                                const std::string& generation, const PrepareOptions& options) {
  CW_RETURN_IF_ERROR(CheckMount(mount));
  const std::string tree = GenerationPath(generation);
  CW_ASSIGN_OR_RETURN(const fs::FileStat found, root.Stat(tree));
  if (found.type != fs::FileType::kDirectory) {
    return absl::FailedPreconditionError(fmt::format("{} is not a directory", tree));
  }
  if (IsDamagedTree(root, generation)) {
    return absl::FailedPreconditionError(fmt::format("{} is damaged", tree));
  }
  CW_ASSIGN_OR_RETURN(const std::optional<Link> link, ScanLink(root, mount));
  if (link.has_value() && link->state == LinkState::kDirectory) {
    CW_RETURN_IF_ERROR(Adopt(root, mount, options));
  }
  CW_RETURN_IF_ERROR(root.MakeDirs(MountParent(mount), kFolderMode));
  return Flip(root, mount, generation, options);
}

absl::StatusOr<std::string> ActivateFreshTree(const fs::Dir& root, const Mount& mount,
                                              const PrepareOptions& options) {
  CW_RETURN_IF_ERROR(CheckMount(mount));
  CW_ASSIGN_OR_RETURN(std::string id, FreeColdId(root, mount));
  CW_ASSIGN_OR_RETURN(id, MakeTree(root, mount, std::move(id), options));
  CW_RETURN_IF_ERROR(Flip(root, mount, id, options));
  return id;
}

absl::Status CommitGeneration(const fs::Dir& root, const std::string& generation) {
  absl::Status renamed = root.RenameNew(StagingPath(generation), GenerationPath(generation));
  if (absl::IsAlreadyExists(renamed)) {
    return fs::RemoveTree(root, StagingPath(generation));
  }
  return renamed;
}

}  // namespace cachewarm::agent
