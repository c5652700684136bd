// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

// Some engines wait as long as a lock file exists (caches::Placement::baton). A command that was
// killed leaves such a file behind, and each later command would wait for it forever.
namespace cachewarm::cli {

// The use of a cache directory by one call of "cachewarm run".
struct DirectoryUse {
  fs::Fd lock;                       // ends the use when it is closed
  std::vector<std::string> removed;  // the stale locks that BeginUse() removed
};

// Notes that this process uses the cache directory. If no other one does, no process holds a lock
// of an engine there (the kernel kills the command of a killed "cachewarm run"), so the baton files
// are removed. Waits up to 10 s for another process that does the same, then returns
// DEADLINE_EXCEEDED.
absl::StatusOr<DirectoryUse> BeginUse(const fs::Dir& dir, const Clock& clock);

}  // namespace cachewarm::cli
