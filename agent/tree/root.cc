// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/root.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

constexpr mode_t kRootMode = 0755;
constexpr mode_t kPrivateMode = 0700;
constexpr std::string_view kLockFile = ".state/lock";
constexpr std::string_view kProbeFile = ".state/.probe";

absl::Status MakePrivate(const fs::Dir& root, std::string_view path) {
  // Skip an unnecessary chmod, which would write to the disk.
  if (const absl::StatusOr<fs::FileStat> found = root.Stat(path);
      found.ok() && found->type == fs::FileType::kDirectory && found->mode == kPrivateMode) {
    return absl::OkStatus();
  }
  if (absl::Status made = root.MakeDir(path, kPrivateMode);
      !made.ok() && !absl::IsAlreadyExists(made)) {
    return made;
  }
  // Call SetMode() even if the path exists: unlike MakeDir(), it fails if the path is a link or on
  // another file system.
  return root.SetMode(path, kPrivateMode);
}

// Removes entries for which `is_leftover` returns true, in `folder` down to `depth` levels.
absl::Status Sweep(const fs::Dir& root, std::string_view folder, long depth,
                   const std::function<bool(const fs::WalkEntry&)>& is_leftover) {
  std::vector<std::string> leftovers;
  CW_RETURN_IF_ERROR(fs::Walk(root, folder, {}, [&](const fs::WalkEntry& entry) {
    const bool is_state = folder.empty() && entry.path.starts_with('.');
    if (!is_state && is_leftover(entry)) {
      leftovers.push_back(folder.empty() ? entry.path : fmt::format("{}/{}", folder, entry.path));
    }
    const long level = 1 + std::count(entry.path.begin(), entry.path.end(), '/');
    return is_state || level >= depth ? fs::WalkNext::kSkipDirectory : fs::WalkNext::kContinue;
  }));
  for (const std::string& path : leftovers) {
    CW_RETURN_IF_ERROR(fs::RemoveTree(root, path));
  }
  return absl::OkStatus();
}

bool IsTemporary(const fs::WalkEntry& entry) {
  const std::string_view path = entry.path;
  const size_t slash = path.rfind('/');
  return entry.stat.type != fs::FileType::kDirectory &&
         path.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with(".tmp-");
}

}  // namespace

absl::StatusOr<fs::Dir> OpenRoot(const std::string& path) {
  absl::StatusOr<fs::Dir> root = fs::Dir::OpenOrMake(path, kRootMode);
  if (!root.ok()) {
    return Annotate(root.status(), fmt::format("root directory {}", path));
  }
  CW_RETURN_IF_ERROR(RepairRoot(*root));
  return root;
}

absl::Status RepairRoot(const fs::Dir& root) {
  for (const std::string_view folder :
       {kGenerations, kStaging, kTrash, kState, kGenerationRecords, kLinkRecords, kCaptureRecords,
        kQuarantineRecords, kDamagedRecords}) {
    if (const absl::Status made = MakePrivate(root, folder); !made.ok()) {
      return Annotate(made, fmt::format("root directory {} cannot be used (it must be on a local "
                                        "disk that is mounted read-write)",
                                        root.name()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<fs::Fd> LockRoot(const fs::Dir& root, const fs::LockWait& wait) {
  return fs::Lock(root, kLockFile, wait);
}

absl::Status SweepLeftovers(const fs::Dir& root) {
  constexpr long kMountDepth = 4;
  CW_RETURN_IF_ERROR(Sweep(root, kStaging, 1, [](const fs::WalkEntry&) { return true; }));
  for (const std::string_view folder : {kState, kGenerationRecords, kLinkRecords, kCaptureRecords,
                                        kQuarantineRecords, kDamagedRecords}) {
    CW_RETURN_IF_ERROR(Sweep(root, folder, 1, IsTemporary));
  }
  // Generations are directories. A link among them is left over from an agent that was killed
  // during Adopt() (links.cc).
  CW_RETURN_IF_ERROR(Sweep(root, kGenerations, 1, [](const fs::WalkEntry& entry) {
    return entry.stat.type != fs::FileType::kDirectory;
  }));
  return Sweep(root, "", kMountDepth, IsTemporary);
}

api::RootStatus CheckRoot(const fs::Dir& root, const absl::StatusOr<fs::Space>& space) {
  api::RootStatus status{.path = root.name()};
  if (!space.ok()) {
    status.message = Message(space.status());
    return status;
  }
  status.free_bytes = space->free_bytes;
  status.executable = !space->no_exec;
  const absl::Status written = fs::WriteFileAtomic(root, kProbeFile, "probe\n", 0600);
  status.writable = written.ok() && !space->read_only;
  if (!status.writable) {
    status.message = space->read_only
                         ? "the agent's root directory is read-only: mount its disk read-write"
                         : fmt::format("cannot write a file: {}", Message(written));
  } else if (!status.executable) {
    status.message =
        "the disk of the agent's root directory is mounted noexec, so compiled code cannot be "
        "loaded: mount the disk with exec or set another root directory (--root)";
  }
  return status;
}

}  // namespace cachewarm::agent
