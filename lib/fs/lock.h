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

// An exclusive flock(2) on an open file, kept until every copy of the descriptor is closed or the
// process ends, however it ends. False when somebody else has it.
absl::StatusOr<bool> TryLock(const Fd& file);
// The same for a file that exists. It is opened for writing where that is allowed, because NFS
// locks only such files exclusively. nullopt when somebody else has the lock.
absl::StatusOr<std::optional<Fd>> TryLock(const Dir& dir, std::string_view path);

// The lock of `path`, made when missing; waits for it. CANCELLED after `stop`, DEADLINE_EXCEEDED
// after `timeout`. The file stays for ever: removing it would let two have the lock.
struct LockWait {
  const Clock& clock;
  Duration timeout{30'000};
  std::stop_token stop;
};
absl::StatusOr<Fd> Lock(const Dir& dir, std::string_view path, const LockWait& wait);

}  // namespace cachewarm::fs
