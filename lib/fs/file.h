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
// Reads up to `bytes_max` from the position until the end; OUT_OF_RANGE when the file is longer.
absl::StatusOr<std::string> ReadAll(const Fd& file, int64_t bytes_max);
// At most `buffer_bytes` from `offset`; 0 is the end.
absl::StatusOr<size_t> ReadAt(const Fd& file, int64_t offset, char* buffer, size_t buffer_bytes);
absl::Status SyncFile(const Fd& file);
// Has the kernel begin to write so many bytes from `offset` to the disk, so that a later SyncFile()
// waits for less; only that tells whether they got there.
void BeginSync(const Fd& file, int64_t offset, int64_t bytes);
// fchown(2); -1 leaves the group.
absl::Status SetFileOwner(const Fd& file, uid_t uid, gid_t gid);
// The empty file `to` gets the content of `from` without a byte being copied (FICLONE,
// ioctl_ficlone(2)).
// False where the file system cannot.
absl::StatusOr<bool> Reflink(const Fd& from, const Fd& to);
absl::StatusOr<FileStat> StatFile(const Fd& file);

// The whole of a small file below `dir`.
absl::StatusOr<std::string> ReadFile(const Dir& dir, std::string_view path, int64_t bytes_max);

// The same of an absolute path that the administrator named: links in it are followed, as those of
// a mounted Secret must be.
absl::StatusOr<std::string> ReadNamedFile(const std::string& path, int64_t bytes_max);

// When a new file outlives a power cut: with the call, or once its caller has called
// Dir::SyncFileSystem; before that a power cut may leave half of it.
enum class Durable { kNow, kOnceAllSynced };

// Replaces `path` with a file of these bytes and this mode: written beside it as ".tmp-*", synced,
// renamed, directory synced. After a crash at any instruction `path` is the old or the new file,
// and at most one ".tmp-*" is left over.
absl::Status WriteFileAtomic(const Dir& dir, std::string_view path, std::string_view bytes,
                             mode_t mode, Durable durable = Durable::kNow);

// Makes `path` a symbolic link to `target` in one rename, whatever file or link was there (a
// directory: ALREADY_EXISTS). Same promise after a crash.
absl::Status ReplaceLink(const Dir& dir, std::string_view path, const std::string& target);

}  // namespace cachewarm::fs
