// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/error.h"
#include "lib/fs/open_beneath.h"

namespace cachewarm::fs {
namespace {

constexpr size_t kReadBytes = 64U << 10U;
constexpr int kNamesMax = 10'000;
// Takes 64 ms on a disk of 125 MB/s.
constexpr int64_t kStepBytes = 8LL << 20;

// Returns a temporary name in the directory of `path`. The name contains the process id, so that
// processes rarely choose the same name. If the name exists nevertheless, because of another writer
// or a crash, the caller tries the next `number`.
std::string TemporaryName(std::string_view path, int number) {
  const size_t slash = path.rfind('/');
  const std::string_view folder =
      slash == std::string_view::npos ? std::string_view() : path.substr(0, slash + 1);
  return fmt::format("{}.tmp-{}-{}", folder, ::getpid(), number);
}

std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

// Calls `make` with one temporary name after the other until it returns something other than
// ALREADY_EXISTS. Returns the name for which `make` returned OK.
template <typename Make>
absl::StatusOr<std::string> CreateTemporary(std::string_view path, const Make& make) {
  for (int number = 0; number < kNamesMax; ++number) {
    std::string name = TemporaryName(path, number);
    const absl::Status made = make(name);
    if (made.ok()) {
      return name;
    }
    if (!absl::IsAlreadyExists(made)) {
      return made;
    }
  }
  return absl::ResourceExhaustedError(fmt::format(
      "{}: the directory of this file has too many temporary files; remove .tmp-*", path));
}

absl::Status ReplaceWith(const Dir& dir, const std::string& temporary, std::string_view path,
                         Durable durable) {
  absl::Status renamed = dir.Rename(temporary, path);
  if (!renamed.ok()) {
    dir.Remove(temporary).IgnoreError();
    return renamed;
  }
  return durable == Durable::kNow ? dir.Sync(FolderOf(path)) : absl::OkStatus();
}

}  // namespace

absl::Status WriteAll(const Fd& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return ErrnoStatus(errno, "write");
    }
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  return absl::OkStatus();
}

absl::Status WriteAllAt(const Fd& file, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file.get(), bytes.data(), bytes.size(), offset);
    if (written < 0 && errno != EINTR) {
      return ErrnoStatus(errno, "write");
    }
    const auto done = std::max<ssize_t>(written, 0);
    bytes.remove_prefix(static_cast<size_t>(done));
    offset += done;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadAll(const Fd& file, int64_t bytes_max) {
  std::string text;
  while (true) {
    const size_t start = text.size();
    text.resize(start + kReadBytes);
    const ssize_t got = ::read(file.get(), text.data() + start, kReadBytes);
    if (got < 0 && errno != EINTR) {
      return ErrnoStatus(errno, "read");
    }
    text.resize(start + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (static_cast<int64_t>(text.size()) > bytes_max) {
      return absl::OutOfRangeError(fmt::format("longer than {} bytes", bytes_max));
    }
    if (got == 0) {
      return text;
    }
  }
}

absl::StatusOr<size_t> ReadAt(const Fd& file, int64_t offset, char* buffer, size_t buffer_bytes) {
  while (true) {
    const ssize_t got = ::pread(file.get(), buffer, buffer_bytes, offset);
    if (got >= 0) {
      return static_cast<size_t>(got);
    }
    if (errno != EINTR) {
      return ErrnoStatus(errno, "read");
    }
  }
}

absl::Status SetFileOwner(const Fd& file, uid_t uid, gid_t gid) {
  return ::fchown(file.get(), uid, gid) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "fchown");
}

absl::StatusOr<bool> Reflink(const Fd& from, const Fd& to) {
  if (::ioctl(to.get(), FICLONE, from.get()) == 0) {
    return true;
  }
  switch (errno) {
    case EOPNOTSUPP:
    case ENOTTY:
    case EINVAL:
    case EXDEV:
    case ENOSYS:
      return false;
    default:
      return ErrnoStatus(errno, "ioctl(FICLONE)");
  }
}

absl::Status SyncFile(const Fd& file) {
  return ::fsync(file.get()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "fsync");
}

absl::Status SyncFileInSteps(const Fd& file, int64_t bytes, const std::stop_token& stop) {
  constexpr unsigned kWriteAndWait =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (int64_t offset = 0; offset < bytes; offset += kStepBytes) {
    if (stop.stop_requested()) {
      return absl::CancelledError("the sync of a file was stopped");
    }
    // The kernel reports a write error once per descriptor: here, or to fsync.
    if (bytes > kStepBytes &&
        ::sync_file_range(file.get(), offset, kStepBytes, kWriteAndWait) != 0) {
      return ErrnoStatus(errno, "sync_file_range");
    }
  }
  return SyncFile(file);
}

void BeginSync(const Fd& file, int64_t offset, int64_t bytes) {
  static_cast<void>(::sync_file_range(file.get(), offset, bytes, SYNC_FILE_RANGE_WRITE));
}

absl::StatusOr<FileStat> StatFile(const Fd& file) {
  struct ::stat buffer {};
  if (::fstat(file.get(), &buffer) != 0) {
    return ErrnoStatus(errno, "fstat");
  }
  return ToFileStat(buffer);
}

absl::StatusOr<std::string> ReadFile(const Dir& dir, std::string_view path, int64_t bytes_max) {
  CW_ASSIGN_OR_RETURN(const Fd file, dir.OpenFile(path));
  auto text = ReadAll(file, bytes_max);
  if (!text.ok()) {
    return Annotate(text.status(), FullName(dir, path));
  }
  return text;
}

absl::StatusOr<std::string> ReadNamedFile(const std::string& path, int64_t bytes_max) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) {
    return ErrnoStatus(error.value(), path);
  }
  CW_ASSIGN_OR_RETURN(const Dir dir, Dir::Open(real.parent_path().string()));
  return ReadFile(dir, real.filename().string(), bytes_max);
}

absl::Status WriteFileAtomic(const Dir& dir, std::string_view path, std::string_view bytes,
                             mode_t mode, Durable durable) {
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  Fd file;
  CW_ASSIGN_OR_RETURN(const std::string temporary,
                      CreateTemporary(path, [&](const std::string& name) -> absl::Status {
                        CW_ASSIGN_OR_RETURN(file, dir.CreateFile(name, mode));
                        return absl::OkStatus();
                      }));
  absl::Status written = WriteAll(file, bytes);
  if (written.ok() && durable == Durable::kNow) {
    written = SyncFile(file);
  }
  if (!written.ok()) {
    dir.Remove(temporary).IgnoreError();
    return Annotate(written, FullName(dir, path));
  }
  return ReplaceWith(dir, temporary, path, durable);
}

absl::Status ReplaceLink(const Dir& dir, std::string_view path, const std::string& target,
                         Durable durable) {
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  if (const auto found = dir.Stat(path); found.ok() && found->type == FileType::kDirectory) {
    return absl::AlreadyExistsError(
        fmt::format("{}: is a directory, not a link", FullName(dir, path)));
  }
  CW_ASSIGN_OR_RETURN(const std::string temporary,
                      CreateTemporary(path, [&](const std::string& name) -> absl::Status {
                        CW_ASSIGN_OR_RETURN(const Parent parent, Parent::Of(dir, name));
                        return ::symlinkat(target.c_str(), parent.fd(), parent.name()) == 0
                                   ? absl::OkStatus()
                                   : ErrnoStatus(errno, FullName(dir, name));
                      }));
  return ReplaceWith(dir, temporary, path, durable);
}

}  // namespace cachewarm::fs
