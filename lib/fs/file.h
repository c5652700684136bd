// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

namespace cachewarm::fs {

// Writes all of `bytes` at the descriptor's position. Continues after short writes and EINTR.
absl::Status WriteAll(const Fd& file, std::string_view bytes);
// Writes all of `bytes` at `offset`, and neither uses nor changes the position of `file`.
absl::Status WriteAllAt(const Fd& file, std::string_view bytes, int64_t offset);
// Returns the bytes from the descriptor's position to the end of the file. OUT_OF_RANGE if there
// are more than `bytes_max`.
absl::StatusOr<std::string> ReadAll(const Fd& file, int64_t bytes_max);
// Reads up to `buffer_bytes` bytes at `offset` and returns how many were read; 0 at the end.
absl::StatusOr<size_t> ReadAt(const Fd& file, int64_t offset, char* buffer, size_t buffer_bytes);
// Makes the content of the file durable (fsync(2)).
absl::Status SyncFile(const Fd& file);
// As SyncFile(), but first writes the first `bytes` bytes back in steps of some megabytes.
// CANCELLED after `stop` and at most one step: fsync(2) cannot be interrupted.
absl::Status SyncFileInSteps(const Fd& file, int64_t bytes, const std::stop_token& stop);
// Starts the write-back of a range and does not wait for it, so that a later SyncFile() is faster.
// Returns no errors, because the later SyncFile() reports them.
void BeginSync(const Fd& file, int64_t offset, int64_t bytes);
// Changes the owner of the file (fchown(2)); a `gid` of -1 keeps the group.
absl::Status SetFileOwner(const Fd& file, uid_t uid, gid_t gid);
// Makes the empty file `to` share the content of `from` without copying it (FICLONE,
// ioctl_ficlone(2)). Returns false if the file system does not support that.
absl::StatusOr<bool> Reflink(const Fd& from, const Fd& to);
absl::StatusOr<FileStat> StatFile(const Fd& file);

// Returns the content of a file below `dir`. OUT_OF_RANGE if it is longer than `bytes_max`.
absl::StatusOr<std::string> ReadFile(const Dir& dir, std::string_view path, int64_t bytes_max);

// As ReadFile() for an absolute, trusted path. Follows links, as a mounted Secret requires.
absl::StatusOr<std::string> ReadNamedFile(const std::string& path, int64_t bytes_max);

// Durability of a new file. kNow: durable on return. kOnceAllSynced: durable after the caller has
// synced the file and its directory, or called Dir::SyncFileSystem(); until then a power failure
// may truncate or remove the file.
enum class Durable { kNow, kOnceAllSynced };

// Creates or replaces `path` with a file of these bytes and this mode: writes a file ".tmp-*" in
// the same directory and renames it. With kNow, also syncs the file before the rename and the
// directory afterwards, so that after a crash at any point `path` is either the old or the new
// file. A crash leaves at most one ".tmp-*".
absl::Status WriteFileAtomic(const Dir& dir, std::string_view path, std::string_view bytes,
                             mode_t mode, Durable durable = Durable::kNow);

// Makes `path` a symbolic link to `target`, and replaces a file or link of that name in one rename.
// ALREADY_EXISTS for a directory. With kNow, durable and crash-safe like WriteFileAtomic(); with
// kOnceAllSynced, a power failure leaves the old link or the new one.
absl::Status ReplaceLink(const Dir& dir, std::string_view path, const std::string& target,
                         Durable durable = Durable::kNow);

}  // namespace cachewarm::fs
