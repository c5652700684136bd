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

// The result of lstat(2). Times are nanoseconds since 1970 UTC.
struct FileStat {
  FileType type = FileType::kOther;
  mode_t mode = 0;  // only the bits of 07777, without the file type
  uid_t uid = 0;
  gid_t gid = 0;
  int64_t bytes = 0;
  int64_t allocated_bytes = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  uint64_t links = 1;  // names of the inode (hard links)
};

// Gives access to the files below a directory and never to anything outside of it.
//
// Paths are relative ("a/b/c"), without empty, "." or ".." parts (INVALID_ARGUMENT), and are
// resolved by openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS: a symbolic link anywhere in
// a path is PERMISSION_DENIED, even if it appears during the call. Kernels before 5.6 are not
// supported (FAILED_PRECONDITION). Modes are exact, independent of the umask. Other errors are
// those of ErrnoStatus(). Thread-safe; owns one file descriptor.
class Dir {
 public:
  // Opens a directory. Follows links in `path`, which must come from a trusted source.
  static absl::StatusOr<Dir> Open(const std::string& path);
  // As Open(), but first creates the missing directories of `path` with `mode`.
  static absl::StatusOr<Dir> OpenOrMake(const std::string& path, mode_t mode);

  int fd() const { return fd_.get(); }
  // Returns the path with which the directory was opened, for messages.
  const std::string& name() const { return name_; }

  absl::StatusOr<Dir> OpenDir(std::string_view path) const;
  // Opens a regular file for reading. INVALID_ARGUMENT for any other type. Never blocks on a FIFO.
  absl::StatusOr<Fd> OpenFile(std::string_view path) const;
  // Creates a file and opens it for writing. ALREADY_EXISTS if anything has that name.
  absl::StatusOr<Fd> CreateFile(std::string_view path, mode_t mode) const;

  // Returns the metadata of this name, without following a symbolic link (lstat(2)). NOT_FOUND if
  // it does not exist.
  absl::StatusOr<FileStat> Stat(std::string_view path) const;
  // Returns true if anything has this name. A missing parent directory is no error: returns false.
  absl::StatusOr<bool> Exists(std::string_view path) const;
  // Returns the target of a symbolic link.
  absl::StatusOr<std::string> ReadLink(std::string_view path) const;

  // Creates a directory. ALREADY_EXISTS if anything has that name.
  absl::Status MakeDir(std::string_view path, mode_t mode) const;
  // Creates `path` and its missing parents with `mode`; existing directories are unchanged.
  absl::Status MakeDirs(std::string_view path, mode_t mode) const;
  // Change the mode or the owner of a file or directory. PERMISSION_DENIED for a symbolic link.
  absl::Status SetMode(std::string_view path, mode_t mode) const;
  absl::Status SetOwner(std::string_view path, uid_t uid, gid_t gid) const;
  // Sets the mtime of this name to the time of the file system, without following a symbolic link.
  // One system call: a rename of the name happens either before or after it.
  absl::Status Touch(std::string_view path) const;

  // Makes `to`, a new name below `to_dir`, a hard link to the file `from` of this directory
  // (linkat(2)). ALREADY_EXISTS if `to` exists. If `from` is a symbolic link, `to` becomes a second
  // name of the symbolic link, not of its target: check the type of `to` afterwards.
  absl::Status LinkTo(std::string_view from, const Dir& to_dir, std::string_view to) const;

  // Renames `from` to `to` and replaces `to` if it exists (rename(2)).
  absl::Status Rename(std::string_view from, std::string_view to) const;
  // As Rename(), but ALREADY_EXISTS if `to` exists.
  absl::Status RenameNew(std::string_view from, std::string_view to) const;
  // Swaps two existing names atomically.
  absl::Status Exchange(std::string_view a, std::string_view b) const;
  // Removes a file, link or empty directory. OK if it does not exist.
  absl::Status Remove(std::string_view path) const;

  // Makes the names in the directory `path` durable (fsync(2)); "" means this directory.
  absl::Status Sync(std::string_view path = "") const;
  // Makes everything written to this file system durable (syncfs(2)).
  absl::Status SyncFileSystem() const;

 private:
  Dir(Fd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  friend class Parent;
  Fd fd_;
  std::string name_;
};

// Returns INVALID_ARGUMENT unless the methods of Dir accept `path`: relative, no empty, "." or ".."
// part, no NUL, at most 4095 bytes and 255 bytes per part.
absl::Status CheckRelativePath(std::string_view path);

}  // namespace cachewarm::fs
