// SPDX-License-Identifier: Apache-2.0
#include "cli/run/torch_directory.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cli/run/directory.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/caches/relocate.h"
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

// Writes the file with the paths that it has in `to`. Returns false if it names none.
absl::StatusOr<bool> PlaceRelocated(const fs::Dir& from, const fs::Dir& to,
                                    const fs::WalkEntry& entry,
                                    const caches::Placement& placement) {
  if (!placement.own_paths || entry.stat.bytes > caches::kOwnPathsBytesMax) {
    return false;
  }
  CW_ASSIGN_OR_RETURN(const std::string text, fs::ReadFile(from, entry.path, entry.stat.bytes));
  const std::string target = fmt::format("{}/{}", to.name(), entry.path);
  const auto relocated =
      caches::Relocate(text, placement, fmt::format("{}/{}", kTorchKind, entry.path),
                       target.substr(0, target.rfind('/')));
  if (!relocated.has_value()) {
    return false;
  }
  CW_RETURN_IF_ERROR(fs::WriteFileAtomic(to, entry.path, *relocated, entry.stat.mode));
  return true;
}

// Links or copies the file `entry` of `from` into `to`, with the absolute paths that are right
// there; replaces an older file with one rename.
absl::Status Place(const fs::Dir& from, const fs::Dir& to, const fs::WalkEntry& entry,
                   const caches::Placement& placement) {
  const size_t slash = entry.path.rfind('/');
  if (slash != std::string::npos) {
    CW_RETURN_IF_ERROR(to.MakeDirs(entry.path.substr(0, slash), kCacheDirectoryMode));
  }
  CW_ASSIGN_OR_RETURN(const bool relocated, PlaceRelocated(from, to, entry, placement));
  if (relocated) {
    return absl::OkStatus();
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

using Sets = std::set<std::string, std::less<>>;  // of autotune results

// Calls `visit(entry, placement)` with each file of `dir`, whose paths are those of the kind, that
// a bundle may hold, until it returns false.
template <typename Visit>
absl::Status ForEachFile(const fs::Dir& dir, const Visit& visit) {
  return fs::Walk(dir, "", {}, [&](const fs::WalkEntry& entry) {
    if (entry.path == kOwnFiles) {
      return fs::WalkNext::kSkipDirectory;
    }
    if (entry.stat.type != fs::FileType::kFile) {
      return fs::WalkNext::kContinue;
    }
    const caches::Placement placement =
        caches::CacheTable::AllPresets().Classify(fmt::format("{}/{}", kTorchKind, entry.path));
    return !placement.carried() || visit(entry, placement) ? fs::WalkNext::kContinue
                                                           : fs::WalkNext::kStop;
  });
}

bool HasEqualBytes(const fs::Dir& a, const fs::Dir& b, const std::string& path) {
  const auto first = fs::ReadFile(a, path, kCopyBytesMax);
  const auto second = fs::ReadFile(b, path, kCopyBytesMax);
  return first.ok() && second.ok() && *first == *second;
}

// Returns the sets of `from` of which `to` has a file with other bytes.
absl::StatusOr<Sets> FindRivalSets(const fs::Dir& from, const fs::Dir& to) {
  Sets sets;
  CW_RETURN_IF_ERROR(ForEachFile(from, [&](const fs::WalkEntry& entry,
                                           const caches::Placement& placement) {
    if (!placement.autotune_set.empty() && !sets.contains(placement.autotune_set)) {
      const auto found = to.Stat(entry.path);
      if (found.ok() && found->inode != entry.stat.inode && !HasEqualBytes(from, to, entry.path)) {
        sets.insert(placement.autotune_set);
      }
    }
    return true;
  }));
  return sets;
}

// Removes from the sets that `torch` has the files that only `kind` has: they are of another
// generation.
absl::Status RemoveForeignResults(const fs::Dir& torch, const fs::Dir& kind) {
  Sets sets;
  CW_RETURN_IF_ERROR(
      ForEachFile(torch, [&](const fs::WalkEntry& /*entry*/, const caches::Placement& placement) {
        sets.insert(placement.autotune_set);
        return true;
      }));
  sets.erase("");
  std::vector<std::string> foreign;
  CW_RETURN_IF_ERROR(
      ForEachFile(kind, [&](const fs::WalkEntry& entry, const caches::Placement& placement) {
        const auto exists = torch.Exists(entry.path);
        if (sets.contains(placement.autotune_set) && exists.ok() && !*exists) {
          foreign.push_back(entry.path);
        }
        return true;
      }));
  for (const std::string& path : foreign) {
    CW_RETURN_IF_ERROR(kind.Remove(path));
  }
  return absl::OkStatus();
}

using NeedsPlacing = std::function<bool(const fs::FileStat& from, const fs::FileStat& to)>;

// Places the files of `from`, except those of `left_out`.
absl::Status PlaceAll(const fs::Dir& from, const fs::Dir& to, const Sets& left_out,
                      const NeedsPlacing& needs_placing) {
  absl::Status placed;
  CW_RETURN_IF_ERROR(
      ForEachFile(from, [&](const fs::WalkEntry& entry, const caches::Placement& placement) {
        if (left_out.contains(placement.autotune_set)) {
          return true;
        }
        const auto found = to.Stat(entry.path);
        if (absl::IsNotFound(found.status()) || (found.ok() && needs_placing(entry.stat, *found))) {
          placed = Place(from, to, entry, placement);
        } else {
          placed = found.status();
        }
        return placed.ok();
      }));
  return placed;
}

}  // namespace

absl::Status LinkIntoTree(const fs::Dir& torch, const fs::Dir& tree) {
  CW_RETURN_IF_ERROR(tree.MakeDirs(kTorchKind, kCacheDirectoryMode));
  CW_ASSIGN_OR_RETURN(const fs::Dir kind, tree.OpenDir(kTorchKind));
  CW_RETURN_IF_ERROR(RemoveForeignResults(torch, kind));
  return PlaceAll(torch, kind, {}, [](const fs::FileStat& from, const fs::FileStat& to) {
    return from.inode != to.inode && (from.bytes != to.bytes || from.mtime_ns != to.mtime_ns);
  });
}

absl::Status LinkFromTree(const fs::Dir& tree, const fs::Dir& torch) {
  const auto kind = tree.OpenDir(kTorchKind);
  if (absl::IsNotFound(kind.status())) {
    return absl::OkStatus();
  }
  CW_RETURN_IF_ERROR(kind.status());
  CW_ASSIGN_OR_RETURN(const Sets rivals, FindRivalSets(*kind, torch));
  return PlaceAll(*kind, torch, rivals,
                  [](const fs::FileStat&, const fs::FileStat&) { return false; });
}

}  // namespace cachewarm::cli
