// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/open_beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/error.h"

namespace cachewarm::fs {
namespace {

// Number of retries after EAGAIN, which the kernel returns if any rename in the system happened
// during the path walk.
constexpr int kRaceRetries = 128;

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * kNanosecondsPerSecond + time.tv_nsec;
}

FileType TypeOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return FileType::kFile;
    case S_IFDIR:
      return FileType::kDirectory;
    case S_IFLNK:
      return FileType::kSymlink;
    default:
      return FileType::kOther;
  }
}

}  // namespace

std::string FullName(const Dir& dir, std::string_view path) {
  return path.empty() ? dir.name() : fmt::format("{}/{}", dir.name(), path);
}

absl::StatusOr<Fd> OpenBeneath(const Dir& dir, const std::string& path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0;; ++attempt) {
    const auto fd = ::syscall(SYS_openat2, dir.fd(), path.c_str(), &how, sizeof(how));
    if (fd >= 0) {
      return Fd(static_cast<int>(fd));
    }
    if (errno == EINTR || (errno == EAGAIN && attempt < kRaceRetries)) {
      continue;
    }
    return ErrnoStatus(errno, FullName(dir, path));
  }
}

absl::StatusOr<Parent> Parent::Of(const Dir& dir, std::string_view path) {
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) {
    return Parent(dir, Fd(), std::string(path));
  }
  CW_ASSIGN_OR_RETURN(Fd opened,
                      OpenBeneath(dir, std::string(path.substr(0, slash)), O_PATH | O_DIRECTORY));
  return Parent(dir, std::move(opened), std::string(path.substr(slash + 1)));
}

FileStat ToFileStat(const struct ::stat& buffer) {
  return {.type = TypeOf(buffer.st_mode),
          .mode = buffer.st_mode & 07777U,
          .uid = buffer.st_uid,
          .gid = buffer.st_gid,
          .bytes = buffer.st_size,
          .allocated_bytes = int64_t{buffer.st_blocks} * 512,
          .device = buffer.st_dev,
          .inode = buffer.st_ino,
          .mtime_ns = Nanoseconds(buffer.st_mtim),
          .ctime_ns = Nanoseconds(buffer.st_ctim),
          .links = buffer.st_nlink};
}

}  // namespace cachewarm::fs
