// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <string>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/error.h"
#include "lib/fs/open_beneath.h"

namespace cachewarm::fs {
namespace {

constexpr Duration kRetryInterval{10};

// `kind` is LOCK_EX or LOCK_SH. Returns false if another descriptor holds a lock that excludes it.
absl::StatusOr<bool> TryFlock(const Fd& file, int kind) {
  while (::flock(file.get(), kind | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return false;
    }
    if (errno != EINTR) {
      return ErrnoStatus(errno, "flock");
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> TryLock(const Fd& file) {
  return TryFlock(file, LOCK_EX);
}

absl::StatusOr<bool> TryShareLock(const Fd& file) {
  return TryFlock(file, LOCK_SH);
}

absl::StatusOr<Fd> OpenLockFile(const Dir& dir, std::string_view path) {
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  return OpenBeneath(dir, std::string(path), O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
}

absl::StatusOr<std::optional<Fd>> TryLock(const Dir& dir, std::string_view path) {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  auto file = OpenBeneath(dir, std::string(path), O_RDWR | kFlags);
  if (absl::IsPermissionDenied(file.status())) {
    file = OpenBeneath(dir, std::string(path), O_RDONLY | kFlags);
  }
  CW_RETURN_IF_ERROR(file.status());
  CW_ASSIGN_OR_RETURN(const bool locked, TryLock(*file));
  return locked ? std::optional<Fd>(*std::move(file)) : std::nullopt;
}

absl::StatusOr<Fd> Lock(const Dir& dir, std::string_view path, const LockWait& wait) {
  CW_ASSIGN_OR_RETURN(Fd file, OpenLockFile(dir, path));
  const MonoTime deadline = wait.clock.Monotonic() + wait.timeout;
  while (true) {
    CW_ASSIGN_OR_RETURN(const bool locked, TryLock(file));
    if (locked) {
      return file;
    }
    if (!SleepFor(wait.clock, kRetryInterval, wait.stop)) {
      return absl::CancelledError("stopped while waiting for a lock");
    }
    if (wait.clock.Monotonic() >= deadline) {
      return absl::DeadlineExceededError(
          fmt::format("{}: another process or thread holds the lock", FullName(dir, path)));
    }
  }
}

}  // namespace cachewarm::fs
