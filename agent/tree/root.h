// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/api/node_cache.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"
#include "lib/fs/lock.h"

namespace cachewarm::agent {

// Opens the root directory and makes what belongs in it. The trees themselves are 0777, so the
// folder above them is 0700: a container that mounts the root by another way, and is not root,
// reaches no other tenant's trees. PERMISSION_DENIED or FAILED_PRECONDITION say what to change.
absl::StatusOr<fs::Dir> OpenRoot(const std::string& path);

// Makes again what belongs in an open root and was removed, and closes what was opened to others;
// writes nothing when nothing is wrong. NOT_FOUND: the root directory itself was removed.
absl::Status RepairRoot(const fs::Dir& root);

// One agent at a time works below a root. Kubelet may restart the container of a pod that is being
// deleted while its successor starts, and the second one would sweep away what the first one makes.
// DEADLINE_EXCEEDED: another agent still runs.
absl::StatusOr<fs::Fd> LockRoot(const fs::Dir& root, const fs::LockWait& wait);

// Removes every unfinished tree and every ".tmp-*" that a killed agent left. At start, under
// the lock, before anything else writes below the root.
absl::Status SweepLeftovers(const fs::Dir& root);

// Whether pods could use a directory below the root: writes a file to find out. Sizes: what all
// generations hold and what the file system has left.
api::RootStatus CheckRoot(const fs::Dir& root, int64_t limit_bytes);

}  // namespace cachewarm::agent
