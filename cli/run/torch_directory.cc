// SPDX-License-Identifier: Apache-2.0
#include "cli/run/torch_directory.h"

#include <functional>
#include <string>

#include "cli/run/directory.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"

namespace cachewarm::cli {
namespace {

constexpr int64_t kCopyBytesMax = 8LL << 30;
constexpr char kNewName[] = ".cachewarm-new";

// Copies a file, for file systems without hard links, to a new file and renames it. Does not copy
// the mtime, which no cache kind below inductor/ needs.
absl::Status Copy(const fs::Dir& from, const fs::Dir& to, const std::string& path, mode_t mode) {
  CW_ASSIGN_OR_RETURN(const std::string bytes, fs::ReadFile(from, path, kCopyBytesMax));
  return fs::WriteFileAtomic(to, path, bytes, mode);
}

// Links or copies the file `entry` of `from` into `to`; replaces an older file with one rename.
absl::Status Place(const fs::Dir& from, const fs::Dir& to, const fs::WalkEntry& entry) {
  const size_t slash = entry.path.rfind('/');
  if (slash != std::string::npos) {
    CW_RETURN_IF_ERROR(to.MakeDirs(entry.path.substr(0, slash), kCacheDirectoryMode));
  }
  const std::string temporary = slash == std::string::npos
                                    ? kNewName
                                    : fmt::format("{}/{}", entry.path.substr(0, slash), kNewName);
  CW_RETURN_IF_ERROR(to.Remove(temporary));
  if (!from.LinkTo(entry.path, to, temporary).ok()) {
    return Copy(from, to, entry.path, entry.stat.mode);
  }
  return to.Rename(temporary, entry.path);
}

using NeedsPlacing = std::function<bool(const fs::FileStat& from, const fs::FileStat& to)>;

absl::Status PlaceAll(const fs::Dir& from, const fs::Dir& to, const NeedsPlacing& needs_placing) {
  absl::Status placed;
  CW_RETURN_IF_ERROR(fs::Walk(from, "", {}, [&](const fs::WalkEntry& entry) {
    if (entry.path == kOwnFiles) {
      return fs::WalkNext::kSkipDirectory;
    }
    const std::string in_tree = fmt::format("{}/{}", kTorchKind, entry.path);
    if (entry.stat.type != fs::FileType::kFile ||
        !caches::CacheTable::AllPresets().Classify(in_tree).carried()) {
      return fs::WalkNext::kContinue;
    }
    const auto found = to.Stat(entry.path);
    if (absl::IsNotFound(found.status()) || (found.ok() && needs_placing(entry.stat, *found))) {
      placed = Place(from, to, entry);
    } else {
      placed = found.status();
    }
    return placed.ok() ? fs::WalkNext::kContinue : fs::WalkNext::kStop;
  }));
  return placed;
}

}  // namespace

absl::Status LinkIntoTree(const fs::Dir& torch, const fs::Dir& tree) {
  CW_RETURN_IF_ERROR(tree.MakeDirs(kTorchKind, kCacheDirectoryMode));
  CW_ASSIGN_OR_RETURN(const fs::Dir kind, tree.OpenDir(kTorchKind));
  return PlaceAll(torch, kind, [](const fs::FileStat& from, const fs::FileStat& to) {
    return from.inode != to.inode && (from.bytes != to.bytes || from.mtime_ns != to.mtime_ns);
  });
}

absl::Status LinkFromTree(const fs::Dir& tree, const fs::Dir& torch) {
  const auto kind = tree.OpenDir(kTorchKind);
  if (absl::IsNotFound(kind.status())) {
    return absl::OkStatus();
  }
  CW_RETURN_IF_ERROR(kind.status());
  return PlaceAll(*kind, torch, [](const fs::FileStat&, const fs::FileStat&) { return false; });
}

}  // namespace cachewarm::cli
