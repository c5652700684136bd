// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/api/node_cache.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"
#include "lib/fs/lock.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {

// Opens the root directory and creates its folders. Trees have mode 0777, so the folder above them
// has mode 0700: a container that mounts the whole root directory, but does not run as user 0,
// cannot access trees of other tenants. Errors: PERMISSION_DENIED or FAILED_PRECONDITION, with the
// remedy.
absl::StatusOr<fs::Dir> OpenRoot(const std::string& path);

// Restores missing folders of an open root and their modes; writes nothing if there is nothing to
// repair. Errors: NOT_FOUND if the root directory was removed.
absl::Status RepairRoot(const fs::Dir& root);

// Locks the root for one agent. Two agents can run at the same time, because kubelet may restart
// the container of a pod that is being deleted while its successor starts; each would then remove
// unfinished work of the other. Errors: DEADLINE_EXCEEDED if another agent is running.
absl::StatusOr<fs::Fd> LockRoot(const fs::Dir& root, const fs::LockWait& wait);

// Removes unfinished trees and ".tmp-*" files of a killed agent. Call at start, under the lock,
// before any other write below the root.
absl::Status SweepLeftovers(const fs::Dir& root);

// Checks whether pods can use directories below the root: writes a file and reads the mount
// options of `space`, the result of fs::MeasureSpace(root).
api::RootStatus CheckRoot(const fs::Dir& root, const absl::StatusOr<fs::Space>& space);

}  // namespace cachewarm::agent
