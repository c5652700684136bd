// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

namespace cachewarm::fs {

// Takes an exclusive flock(2) on an open file. The lock is held until all copies of the descriptor
// are closed or the process ends. Returns false if another descriptor holds the lock.
absl::StatusOr<bool> TryLock(const Fd& file);
// Takes a shared flock(2), also in place of an exclusive one that this descriptor holds. Returns
// false if another descriptor holds an exclusive lock.
absl::StatusOr<bool> TryShareLock(const Fd& file);
// Opens or creates a file for TryLock() and TryShareLock(). Never remove it: see Lock().
absl::StatusOr<Fd> OpenLockFile(const Dir& dir, std::string_view path);
// Opens an existing file, locks it in the same way and returns its descriptor; nullopt if another
// descriptor holds the lock. Opens the file for writing if permitted, because NFS grants exclusive
// locks only on files that are open for writing.
absl::StatusOr<std::optional<Fd>> TryLock(const Dir& dir, std::string_view path);

// Arguments of Lock(), which opens or creates `path` and waits for its lock. Errors: CANCELLED
// after `stop`, DEADLINE_EXCEEDED after `timeout`. Never remove the file: two processes could then
// hold the lock, one of the removed file and one of the new file.
struct LockWait {
  const Clock& clock;
  Duration timeout{30'000};
  std::stop_token stop;
};
absl::StatusOr<Fd> Lock(const Dir& dir, std::string_view path, const LockWait& wait);

}  // namespace cachewarm::fs
