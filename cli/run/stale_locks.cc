// SPDX-License-Identifier: Apache-2.0
#include "cli/run/stale_locks.h"

#include <utility>

#include "cli/run/directory.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/lock.h"
#include "lib/fs/tree.h"

namespace cachewarm::cli {
namespace {

constexpr char kUseLock[] = ".cachewarm/use.lock";
constexpr Duration kUseWait{10'000};

absl::StatusOr<std::vector<std::string>> RemoveBatons(const fs::Dir& dir) {
  std::vector<std::string> batons;
  CW_RETURN_IF_ERROR(fs::Walk(dir, "", {}, [&batons](const fs::WalkEntry& entry) {
    if (entry.path == kOwnFiles) {
      return fs::WalkNext::kSkipDirectory;
    }
    if (entry.stat.type == fs::FileType::kFile &&
        caches::CacheTable::AllPresets().Classify(entry.path).baton) {
      batons.push_back(entry.path);
    }
    return fs::WalkNext::kContinue;
  }));
  for (const std::string& path : batons) {
    CW_RETURN_IF_ERROR(dir.Remove(path));
  }
  return batons;
}

}  // namespace

absl::StatusOr<DirectoryUse> BeginUse(const fs::Dir& dir, const Clock& clock) {
  CW_RETURN_IF_ERROR(dir.MakeDirs(kOwnFiles, kCacheDirectoryMode));
  DirectoryUse use;
  CW_ASSIGN_OR_RETURN(use.lock, fs::OpenLockFile(dir, kUseLock));
  CW_ASSIGN_OR_RETURN(const bool alone, fs::TryLock(use.lock));
  if (alone) {
    CW_ASSIGN_OR_RETURN(use.removed, RemoveBatons(dir));
  }
  const MonoTime deadline = clock.Monotonic() + kUseWait;
  while (true) {
    CW_ASSIGN_OR_RETURN(const bool shared, fs::TryShareLock(use.lock));
    if (shared) {
      return use;
    }
    if (!SleepFor(clock, Duration(10), {}) || clock.Monotonic() >= deadline) {
      return absl::DeadlineExceededError(
          fmt::format("another process has held {}/{} for 10 s; end it or choose another --dir",
                      dir.name(), kUseLock));
    }
  }
}

}  // namespace cachewarm::cli
