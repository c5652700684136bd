// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

namespace cachewarm::fs {

// Writes all of `bytes` at the descriptor's position; short writes and EINTR are continued.
absl::Status WriteAll(const Fd& file, std::string_view bytes);
// Reads from the position to the end. OUT_OF_RANGE if that is more than `bytes_max`.
absl::StatusOr<std::string> ReadAll(const Fd& file, int64_t bytes_max);
// Reads up to `buffer_bytes` at `offset` and returns their number; 0 at the end.
absl::StatusOr<size_t> ReadAt(const Fd& file, int64_t offset, char* buffer, size_t buffer_bytes);
// Makes the content durable (fsync(2)).
absl::Status SyncFile(const Fd& file);
// Starts the write-back of a range and does not wait for it, so that a later SyncFile() is faster.
// Only SyncFile() reports errors.
void BeginSync(const Fd& file, int64_t offset, int64_t bytes);
// Changes the owner (fchown(2)); a `gid` of -1 keeps the group.
absl::Status SetFileOwner(const Fd& file, uid_t uid, gid_t gid);
// Clones the content of `from` into the empty file `to` without copying (FICLONE,
// ioctl_ficlone(2)). False if the file system does not support it.
absl::StatusOr<bool> Reflink(const Fd& from, const Fd& to);
absl::StatusOr<FileStat> StatFile(const Fd& file);

// Returns the content of a file below `dir`. OUT_OF_RANGE if it is longer than `bytes_max`.
absl::StatusOr<std::string> ReadFile(const Dir& dir, std::string_view path, int64_t bytes_max);

// As ReadFile() for an absolute, trusted path. Follows links, as a mounted Secret requires.
absl::StatusOr<std::string> ReadNamedFile(const std::string& path, int64_t bytes_max);

// When a new file survives a power failure: on return, or after Dir::SyncFileSystem(). Before that
// call a power failure may truncate it.
enum class Durable { kNow, kOnceAllSynced };

// Replaces `path` with a file of these bytes and this mode: writes ".tmp-*" beside it, syncs it,
// renames it and syncs the directory. After a crash at any point `path` is the old or the new file,
// and at most one ".tmp-*" is left over.
absl::Status WriteFileAtomic(const Dir& dir, std::string_view path, std::string_view bytes,
                             mode_t mode, Durable durable = Durable::kNow);

// Makes `path` a symbolic link to `target` by one rename, replacing a file or link. ALREADY_EXISTS
// for a directory. Durable and crash-safe as WriteFileAtomic().
absl::Status ReplaceLink(const Dir& dir, std::string_view path, const std::string& target);

}  // namespace cachewarm::fs
