// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/error.h"
#include "lib/fs/open_beneath.h"

namespace cachewarm::fs {
namespace {

absl::Status ChangeMode(const Fd& file, mode_t mode, const std::string& name) {
  return ::fchmod(file.get(), mode) == 0 ? absl::OkStatus() : ErrnoStatus(errno, name);
}

// Flags to open a name for reading, fchmod or fchown. O_PATH would not suffice, because fchmod and
// fchown fail for a descriptor that was opened with it. O_NONBLOCK avoids blocking on a FIFO.
constexpr int kOpenForChange = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;

absl::Status RenameWith(const Dir& dir, std::string_view from, std::string_view to,
                        unsigned flags) {
  CW_ASSIGN_OR_RETURN(const Parent source, Parent::Of(dir, from));
  CW_ASSIGN_OR_RETURN(const Parent target, Parent::Of(dir, to));
  if (::renameat2(source.fd(), source.name(), target.fd(), target.name(), flags) != 0) {
    return ErrnoStatus(errno, fmt::format("rename {} to {}", FullName(dir, from), to));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRelativePath(std::string_view path) {
  if (path.size() >= PATH_MAX || path.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError("the path is too long or holds a NUL byte");
  }
  for (std::string_view rest = path;;) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > NAME_MAX) {
      return absl::InvalidArgumentError(fmt::format(
          "\"{}\": expected a relative path without empty, \".\", \"..\" or overlong parts", path));
    }
    if (slash == std::string_view::npos) {
      return absl::OkStatus();
    }
    rest.remove_prefix(slash + 1);
  }
}

absl::StatusOr<Dir> Dir::Open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.ok()) {
    return ErrnoStatus(errno, path);
  }
  return Dir(std::move(fd), path);
}

absl::StatusOr<Dir> Dir::OpenOrMake(const std::string& path, mode_t mode) {
  for (size_t end = path.find('/', 1); !path.empty(); end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    struct ::stat buffer {};
    if (::stat(part.c_str(), &buffer) != 0 && errno == ENOENT) {
      if (::mkdir(part.c_str(), mode) == 0) {
        if (::chmod(part.c_str(), mode) != 0) {
          return ErrnoStatus(errno, part);
        }
      } else if (errno != EEXIST) {
        return ErrnoStatus(errno, part);
      }
    }
    if (end == std::string::npos) {
      break;
    }
  }
  return Open(path);
}

absl::StatusOr<Dir> Dir::OpenDir(std::string_view path) const {
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  CW_ASSIGN_OR_RETURN(Fd fd, OpenBeneath(*this, std::string(path), O_RDONLY | O_DIRECTORY));
  return Dir(std::move(fd), FullName(*this, path));
}

absl::StatusOr<Fd> Dir::OpenFile(std::string_view path) const {
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  CW_ASSIGN_OR_RETURN(Fd fd, OpenBeneath(*this, std::string(path), kOpenForChange));
  struct ::stat buffer {};
  if (::fstat(fd.get(), &buffer) != 0) {
    return ErrnoStatus(errno, FullName(*this, path));
  }
  if (!S_ISREG(buffer.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("{}: not a regular file", FullName(*this, path)));
  }
  return fd;
}

absl::StatusOr<Fd> Dir::CreateFile(std::string_view path, mode_t mode) const {
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  CW_ASSIGN_OR_RETURN(
      Fd fd, OpenBeneath(*this, std::string(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  // The umask or a default ACL of the directory may have removed bits. Reading the mode takes less
  // time than setting it, which writes the inode again.
  struct ::stat made {};
  if (::fstat(fd.get(), &made) != 0 || (made.st_mode & 07777U) != mode) {
    CW_RETURN_IF_ERROR(ChangeMode(fd, mode, FullName(*this, path)));
  }
  return fd;
}

absl::StatusOr<FileStat> Dir::Stat(std::string_view path) const {
  CW_ASSIGN_OR_RETURN(const Parent parent, Parent::Of(*this, path));
  struct ::stat buffer {};
  if (::fstatat(parent.fd(), parent.name(), &buffer, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrnoStatus(errno, FullName(*this, path));
  }
  return ToFileStat(buffer);
}

absl::StatusOr<bool> Dir::Exists(std::string_view path) const {
  const auto found = Stat(path);
  if (absl::IsNotFound(found.status())) {
    return false;
  }
  CW_RETURN_IF_ERROR(found.status());
  return true;
}

absl::StatusOr<std::string> Dir::ReadLink(std::string_view path) const {
  CW_ASSIGN_OR_RETURN(const Parent parent, Parent::Of(*this, path));
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(parent.fd(), parent.name(), target.data(), target.size());
  if (size < 0) {
    return ErrnoStatus(errno, FullName(*this, path));
  }
  return std::string(target.data(), static_cast<size_t>(size));
}

absl::Status Dir::MakeDir(std::string_view path, mode_t mode) const {
  CW_ASSIGN_OR_RETURN(const Parent parent, Parent::Of(*this, path));
  if (::mkdirat(parent.fd(), parent.name(), 0700) != 0) {
    return ErrnoStatus(errno, FullName(*this, path));
  }
  return SetMode(path, mode);
}

absl::Status Dir::MakeDirs(std::string_view path, mode_t mode) const {
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string_view part = path.substr(0, end);
    if (absl::Status made = MakeDir(part, mode); !made.ok()) {
      if (!absl::IsAlreadyExists(made)) {
        return made;
      }
      CW_ASSIGN_OR_RETURN(const FileStat found, Stat(part));
      if (found.type != FileType::kDirectory) {
        return absl::AlreadyExistsError(
            fmt::format("{}: exists and is not a directory", FullName(*this, part)));
      }
    }
    if (end == std::string_view::npos) {
      return absl::OkStatus();
    }
  }
}

absl::Status Dir::SetMode(std::string_view path, mode_t mode) const {
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  CW_ASSIGN_OR_RETURN(const Fd fd, OpenBeneath(*this, std::string(path), kOpenForChange));
  return ChangeMode(fd, mode, FullName(*this, path));
}

absl::Status Dir::Touch(std::string_view path) const {
  CW_ASSIGN_OR_RETURN(const Parent parent, Parent::Of(*this, path));
  const std::array<timespec, 2> times = {timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                         timespec{.tv_sec = 0, .tv_nsec = UTIME_NOW}};
  return ::utimensat(parent.fd(), parent.name(), times.data(), AT_SYMLINK_NOFOLLOW) == 0
             ? absl::OkStatus()
             : ErrnoStatus(errno, FullName(*this, path));
}

absl::Status Dir::SetOwner(std::string_view path, uid_t uid, gid_t gid) const {
  CW_RETURN_IF_ERROR(CheckRelativePath(path));
  CW_ASSIGN_OR_RETURN(const Fd fd, OpenBeneath(*this, std::string(path), kOpenForChange));
  return ::fchown(fd.get(), uid, gid) == 0 ? absl::OkStatus()
                                           : ErrnoStatus(errno, FullName(*this, path));
}

absl::Status Dir::LinkTo(std::string_view from, const Dir& to_dir, std::string_view to) const {
  CW_ASSIGN_OR_RETURN(const Parent source, Parent::Of(*this, from));
  CW_ASSIGN_OR_RETURN(const Parent target, Parent::Of(to_dir, to));
  return ::linkat(source.fd(), source.name(), target.fd(), target.name(), 0) == 0
             ? absl::OkStatus()
             : ErrnoStatus(errno, FullName(to_dir, to));
}

absl::Status Dir::Rename(std::string_view from, std::string_view to) const {
  return RenameWith(*this, from, to, 0);
}

absl::Status Dir::RenameNew(std::string_view from, std::string_view to) const {
  return RenameWith(*this, from, to, RENAME_NOREPLACE);
}

absl::Status Dir::Exchange(std::string_view a, std::string_view b) const {
  return RenameWith(*this, a, b, RENAME_EXCHANGE);
}

absl::Status Dir::Remove(std::string_view path) const {
  CW_ASSIGN_OR_RETURN(const Parent parent, Parent::Of(*this, path));
  if (::unlinkat(parent.fd(), parent.name(), 0) == 0 || errno == ENOENT) {
    return absl::OkStatus();
  }
  // The name may be a directory: Linux then returns EISDIR, POSIX specifies EPERM.
  if ((errno == EISDIR || errno == EPERM) &&
      (::unlinkat(parent.fd(), parent.name(), AT_REMOVEDIR) == 0 || errno == ENOENT)) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, FullName(*this, path));
}

absl::Status Dir::Sync(std::string_view path) const {
  if (path.empty()) {
    return ::fsync(fd()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, name_);
  }
  CW_ASSIGN_OR_RETURN(const Dir below, OpenDir(path));
  return below.Sync();
}

absl::Status Dir::SyncFileSystem() const {
  return ::syncfs(fd()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, name_);
}

}  // namespace cachewarm::fs
