// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/fs/fd.h"

namespace cachewarm::fs {

enum class FileType { kFile, kDirectory, kSymlink, kOther };

// What lstat(2) says. Times are nanoseconds since 1970 UTC.
struct FileStat {
  FileType type = FileType::kOther;
  mode_t mode = 0;  // permission bits only, 07777
  uid_t uid = 0;
  gid_t gid = 0;
  int64_t bytes = 0;
  int64_t allocated_bytes = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
};

// A directory that nothing done through it can leave. Every path is relative, "a/b/c" without
// empty, "." or ".." parts (INVALID_ARGUMENT), and is walked by openat2(2) with RESOLVE_BENEATH and
// RESOLVE_NO_SYMLINKS: a symbolic link in any place gives PERMISSION_DENIED, also when it appears
// under a running call. Kernels before 5.6 are refused (FAILED_PRECONDITION), never worked around.
// Modes are exact, whatever the umask. Thread-safe: it holds one descriptor and nothing else.
class Dir {
 public:
  // `path` is the administrator's: links in it are followed. It must name a directory.
  static absl::StatusOr<Dir> Open(const std::string& path);
  // Makes the missing parts of `path` with `mode` first.
  static absl::StatusOr<Dir> OpenOrMake(const std::string& path, mode_t mode);

  int fd() const { return fd_.get(); }
  // For messages only: the path it was opened by.
  const std::string& name() const { return name_; }

  absl::StatusOr<Dir> OpenDir(std::string_view path) const;
  // A regular file for reading; anything else is INVALID_ARGUMENT. Never blocks on a FIFO.
  absl::StatusOr<Fd> OpenFile(std::string_view path) const;
  // A new file for writing; ALREADY_EXISTS when anything has that name.
  absl::StatusOr<Fd> CreateFile(std::string_view path, mode_t mode) const;

  // What the name itself is, a link too. NOT_FOUND when there is none.
  absl::StatusOr<FileStat> Stat(std::string_view path) const;
  // False also when a part before the last does not exist.
  absl::StatusOr<bool> Exists(std::string_view path) const;
  absl::StatusOr<std::string> ReadLink(std::string_view path) const;

  // ALREADY_EXISTS when anything has that name.
  absl::Status MakeDir(std::string_view path, mode_t mode) const;
  // Every missing part with `mode`; parts that exist stay as they are.
  absl::Status MakeDirs(std::string_view path, mode_t mode) const;
  // Of a file or directory; a link is refused.
  absl::Status SetMode(std::string_view path, mode_t mode) const;
  absl::Status SetOwner(std::string_view path, uid_t uid, gid_t gid) const;

  // linkat(2): the file `from` gets a second name, `to` below `to_dir`. ALREADY_EXISTS when
  // anything has that name. A link is not followed: what it made must be looked at.
  absl::Status LinkTo(std::string_view from, const Dir& to_dir, std::string_view to) const;

  // rename(2): replaces what `to` names.
  absl::Status Rename(std::string_view from, std::string_view to) const;
  // ALREADY_EXISTS when `to` exists.
  absl::Status RenameNew(std::string_view from, std::string_view to) const;
  // Both names must exist; they trade places in one step.
  absl::Status Exchange(std::string_view a, std::string_view b) const;
  // A file, link or empty directory. Gone already is OK.
  absl::Status Remove(std::string_view path) const;

  // The name entries of this directory itself (or of `path` below it) are on the disk.
  absl::Status Sync(std::string_view path = "") const;
  // Everything written to this file system is on the disk: syncfs(2).
  absl::Status SyncFileSystem() const;

 private:
  Dir(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  friend class Parent;
  Fd fd_;
  std::string name_;
};

// OK for a path that the calls above take: relative, no empty, "." or ".." part, no NUL, at most
// 4095 bytes and 255 a part.
absl::Status CheckRelativePath(std::string_view path);

}  // namespace cachewarm::fs
