// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/error.h"
#include "lib/fs/open_beneath.h"

namespace cachewarm::fs {
namespace {

struct CloseDir {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

absl::Status LimitExceeded(const WalkLimits& limits, const std::string& path) {
  return absl::ResourceExhaustedError(fmt::format("{}: contains more than {} entries or {} levels",
                                                  path.empty() ? "." : path, limits.entries_max,
                                                  limits.depth_max));
}

// Returns up to `names_max` names of an open directory, in the order of the file system.
absl::StatusOr<std::vector<std::string>> SomeNames(int fd, int64_t names_max,
                                                   const std::string& path,
                                                   int64_t bytes_max = INT64_MAX) {
  // Open the directory again: closedir() closes the descriptor of its stream, but `fd` must stay
  // open, with an unchanged read position.
  Fd own(::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own.ok()) {
    return ErrnoStatus(errno, path);
  }
  const std::unique_ptr<DIR, CloseDir> stream(::fdopendir(own.get()));
  if (stream == nullptr) {
    return ErrnoStatus(errno, path);
  }
  static_cast<void>(own.Release());
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = &entry->d_name[0];
    if (name == "." || name == "..") {
      continue;
    }
    if (static_cast<int64_t>(names.size()) >= names_max) {
      return names;
    }
    bytes_max -= static_cast<int64_t>(name.size());
    if (bytes_max < 0) {
      return absl::ResourceExhaustedError(
          fmt::format("{}: its names take too many bytes", path.empty() ? "." : path));
    }
    names.emplace_back(name);
  }
  if (errno != 0) {
    return ErrnoStatus(errno, path);
  }
  return names;
}

// Returns the names in an open directory, in byte order. RESOURCE_EXHAUSTED above `names_max`.
absl::StatusOr<std::vector<std::string>> NamesIn(int fd, int64_t names_max, const std::string& path,
                                                 int64_t bytes_max = INT64_MAX) {
  CW_ASSIGN_OR_RETURN(std::vector<std::string> names,
                      SomeNames(fd, names_max + 1, path, bytes_max));
  if (static_cast<int64_t>(names.size()) > names_max) {
    return absl::ResourceExhaustedError(
        fmt::format("{}: more than {} entries", path.empty() ? "." : path, names_max));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Fd OpenChild(int fd, const std::string& name) {
  return Fd(::openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// True if the error shows that another process removed or replaced the name during the walk. The
// walk skips such names without an error.
bool IsVanished(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

class Walker {
 public:
  Walker(const WalkLimits& limits, uint64_t device,
         const std::function<WalkNext(const WalkEntry&)>& visit)
      : limits_(limits),
        device_(device),
        left_(limits.entries_max),
        bytes_left_(limits.name_bytes_max),
        visit_(visit) {}

  absl::Status Directory(int fd, const std::string& path, int depth) {
    if (depth > limits_.depth_max) {
      return LimitExceeded(limits_, path);
    }
    CW_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                        NamesIn(fd, left_, path, bytes_left_));
    left_ -= static_cast<int64_t>(names.size());
    int64_t bytes = 0;
    for (const std::string& name : names) {
      bytes += static_cast<int64_t>(name.size());
    }
    bytes_left_ -= bytes;
    for (const std::string& name : names) {
      CW_RETURN_IF_ERROR(
          Child(fd, path.empty() ? name : fmt::format("{}/{}", path, name), name, depth));
      if (stopped_) {
        break;
      }
    }
    bytes_left_ += bytes;
    return absl::OkStatus();
  }

 private:
  absl::Status Child(int fd, const std::string& path, const std::string& name, int depth) {
    struct ::stat buffer {};
    if (::fstatat(fd, name.c_str(), &buffer, AT_SYMLINK_NOFOLLOW) != 0) {
      return IsVanished(errno) ? absl::OkStatus() : ErrnoStatus(errno, path);
    }
    const WalkEntry entry{.path = path, .stat = ToFileStat(buffer)};
    const WalkNext next = visit_(entry);
    stopped_ = next == WalkNext::kStop;
    if (next != WalkNext::kContinue || entry.stat.type != FileType::kDirectory ||
        entry.stat.device != device_) {
      return absl::OkStatus();
    }
    const Fd child = OpenChild(fd, name);
    if (!child.ok()) {
      return IsVanished(errno) ? absl::OkStatus() : ErrnoStatus(errno, path);
    }
    return Directory(child.get(), path, depth + 1);
  }

  const WalkLimits& limits_;
  const uint64_t device_;
  int64_t left_;
  int64_t bytes_left_;
  const std::function<WalkNext(const WalkEntry&)>& visit_;
  bool stopped_ = false;
};

// The behaviour of a removal at its limits.
enum class OverLimit { kFail, kStopInPart };

class Remover {
 public:
  // `top` is the tree to remove, a name in the directory `top_fd`.
  Remover(int top_fd, std::string top, uint64_t device, const WalkLimits& limits, OverLimit over)
      : top_fd_(top_fd),
        top_(std::move(top)),
        device_(device),
        limits_(limits),
        left_(limits.entries_max),
        over_(over) {}

  // Returns true if the name is gone, false if kStopInPart has reached the number of names.
  absl::StatusOr<bool> Name(int fd, const std::string& name, const std::string& path, int depth) {
    if (left_ <= 0) {
      return over_ == OverLimit::kFail ? absl::StatusOr<bool>(LimitExceeded(limits_, path)) : false;
    }
    if (::unlinkat(fd, name.c_str(), 0) == 0 || errno == ENOENT) {
      --left_;
      return true;
    }
    const int unlink_error = errno;
    const Fd child = OpenChild(fd, name);
    if (!child.ok()) {
      return ErrnoStatus(errno == ENOTDIR ? unlink_error : errno, path);
    }
    struct ::stat buffer {};
    if (::fstat(child.get(), &buffer) != 0) {
      return ErrnoStatus(errno, path);
    }
    if (buffer.st_dev != device_) {
      return absl::FailedPreconditionError(
          fmt::format("{}: another file system is mounted there; unmount it first", path));
    }
    if (depth >= limits_.depth_max) {
      return over_ == OverLimit::kFail ? LimitExceeded(limits_, path)
                                       : MoveUp(fd, name, path, buffer.st_ino);
    }
    // Make the directory writable, which an unprivileged owner of a 0555 directory needs. Ignore an
    // error: unlinkat will report the reason.
    static_cast<void>(::fchmod(child.get(), 0700));
    CW_ASSIGN_OR_RETURN(const bool is_empty, Content(child.get(), path, depth));
    if (!is_empty) {
      return false;
    }
    --left_;
    if (::unlinkat(fd, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, path);
    }
    return true;
  }

 private:
  static constexpr int64_t kBatch = 4096;  // names in memory for each level

  absl::StatusOr<bool> Content(int fd, const std::string& path, int depth) {
    while (true) {
      CW_ASSIGN_OR_RETURN(const std::vector<std::string> names, SomeNames(fd, kBatch, path));
      if (names.empty()) {
        return true;
      }
      for (const std::string& name : names) {
        CW_ASSIGN_OR_RETURN(const bool gone,
                            Name(fd, name, fmt::format("{}/{}", path, name), depth + 1));
        if (!gone) {
          return false;
        }
      }
    }
  }

  // Moves a directory that is too deep next to `top_`.
  absl::StatusOr<bool> MoveUp(int fd, const std::string& name, const std::string& path,
                              uint64_t inode) {
    --left_;
    const std::string to = fmt::format("{}.{}", top_, inode);
    if (::renameat(fd, name.c_str(), top_fd_, to.c_str()) != 0) {
      return ErrnoStatus(errno, path);
    }
    return true;
  }

  const int top_fd_;
  const std::string top_;
  const uint64_t device_;
  const WalkLimits limits_;
  int64_t left_;
  const OverLimit over_;
};

absl::StatusOr<bool> Remove(const Dir& dir, std::string_view path, const WalkLimits& limits,
                            OverLimit over) {
  const auto parent = Parent::Of(dir, path);
  if (absl::IsNotFound(parent.status())) {
    return true;
  }
  CW_RETURN_IF_ERROR(parent.status());
  struct ::stat buffer {};
  if (::fstat(dir.fd(), &buffer) != 0) {
    return ErrnoStatus(errno, dir.name());
  }
  return Remover(parent->fd(), parent->name(), buffer.st_dev, limits, over)
      .Name(parent->fd(), parent->name(), FullName(dir, path), 0);
}

}  // namespace

absl::Status Walk(const Dir& dir, std::string_view path, const WalkLimits& limits,
                  const std::function<WalkNext(const WalkEntry&)>& visit) {
  if (!path.empty()) {
    CW_ASSIGN_OR_RETURN(const Dir below, dir.OpenDir(path));
    return Walk(below, "", limits, visit);
  }
  struct ::stat buffer {};
  if (::fstat(dir.fd(), &buffer) != 0) {
    return ErrnoStatus(errno, dir.name());
  }
  return Annotate(Walker(limits, buffer.st_dev, visit).Directory(dir.fd(), "", 1), dir.name());
}

absl::Status RemoveTree(const Dir& dir, std::string_view path, const WalkLimits& limits) {
  return Remove(dir, path, limits, OverLimit::kFail).status();
}

absl::StatusOr<bool> RemoveSome(const Dir& dir, std::string_view path, int64_t entries_max) {
  return Remove(dir, path, {.entries_max = entries_max}, OverLimit::kStopInPart);
}

absl::Status MoveContent(const Dir& dir, std::string_view from, std::string_view to) {
  constexpr int64_t kMovedAtOnce = 4096;
  constexpr int kPassesMax = 1000;  // a process may make names as fast as they are moved
  CW_ASSIGN_OR_RETURN(const Dir source, dir.OpenDir(from));
  bool has_moved = true;
  for (int pass = 0; has_moved && pass < kPassesMax; ++pass) {
    has_moved = false;
    CW_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                        SomeNames(source.fd(), kMovedAtOnce, FullName(dir, from)));
    for (const std::string& name : names) {
      absl::Status moved =
          dir.RenameNew(fmt::format("{}/{}", from, name), fmt::format("{}/{}", to, name));
      if (!moved.ok() && !absl::IsAlreadyExists(moved) && !absl::IsNotFound(moved)) {
        return moved;
      }
      has_moved |= moved.ok();
    }
  }
  return absl::OkStatus();
}

int64_t AllocatedShare(const FileStat& stat) {
  return stat.type == FileType::kFile
             ? stat.allocated_bytes / static_cast<int64_t>(std::max<uint64_t>(stat.links, 1))
             : stat.allocated_bytes;
}

absl::StatusOr<TreeUsage> MeasureTree(const Dir& dir, std::string_view path,
                                      const WalkLimits& limits) {
  TreeUsage usage;
  CW_RETURN_IF_ERROR(Walk(dir, path, limits, [&usage](const WalkEntry& entry) {
    ++usage.inodes;
    usage.allocated_bytes += AllocatedShare(entry.stat);
    if (entry.stat.type == FileType::kFile) {
      ++usage.files;
      usage.bytes += entry.stat.bytes;
    }
    return WalkNext::kContinue;
  }));
  return usage;
}

absl::StatusOr<Space> MeasureSpace(const Dir& dir) {
  struct ::statvfs buffer {};
  if (::fstatvfs(dir.fd(), &buffer) != 0) {
    return ErrnoStatus(errno, dir.name());
  }
  const auto block = static_cast<int64_t>(buffer.f_frsize);
  return Space{.total_bytes = static_cast<int64_t>(buffer.f_blocks) * block,
               .free_bytes = static_cast<int64_t>(buffer.f_bavail) * block,
               .total_inodes = static_cast<int64_t>(buffer.f_files),
               .free_inodes = static_cast<int64_t>(buffer.f_favail),
               .read_only = (buffer.f_flag & ST_RDONLY) != 0,
               .no_exec = (buffer.f_flag & ST_NOEXEC) != 0};
}

}  // namespace cachewarm::fs
