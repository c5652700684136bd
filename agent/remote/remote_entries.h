// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

namespace cachewarm::agent {

// Directory in each served tree that holds the entries and the socket. lib/caches/kinds lists the
// entries as files to capture, and points torch to the socket.
inline constexpr std::string_view kRemoteFolder = "redis";
inline constexpr std::string_view kRemoteSocket = "endpoint.sock";
// Private directory below the root for files that are not complete yet.
inline constexpr std::string_view kRemoteStaging = ".state/redis";

struct RemoteEntryLimits {
  int64_t value_bytes_max = 32LL << 20U;
  // Limits of one tree.
  int64_t entries_max = 4096;
  int64_t bytes_max = 4LL << 30U;
  // Nothing is stored while the file system has less free space than this, because kubelet evicts
  // pods when the disk is nearly full.
  int64_t free_bytes_min = 1LL << 30U;
};

// A value and the compile time that torch stored in it ("time_taken_ms"); 0 if there is none.
struct RemoteEntry {
  fs::Fd file;
  int64_t bytes = 0;
  int64_t compile_ms = 0;
};

// The entries of the Redis endpoint in one tree: one file for each key, "redis/<sha256 of the
// key>.value", which holds exactly the bytes of the value. The key is not stored: a request names
// it, and SHA-256 has no known collisions. Pods can write the tree, so no link is followed and
// every size is checked. Not thread-safe.
class RemoteEntries {
 public:
  // Prepares the directory of the tree at `path` below `root`, which must outlive the entries, and
  // counts the existing entries.
  static absl::StatusOr<RemoteEntries> Open(const fs::Dir& root, const std::string& path,
                                            const RemoteEntryLimits& limits);

  // Opens the value of a key. NOT_FOUND if there is none, or no regular file within the limits.
  absl::StatusOr<RemoteEntry> Find(std::string_view key) const;
  bool Contains(std::string_view key) const;
  // Stores a value with one rename, so that no reader and no capture sees a part of it.
  // RESOURCE_EXHAUSTED if it exceeds a limit or the disk is full. After any error the key has no
  // value, also not an older one.
  absl::Status Store(std::string_view key, std::string_view value);
  // Removes the value of a key, if there is one.
  void Remove(std::string_view key);

 private:
  RemoteEntries(const fs::Dir& root, std::string folder, const RemoteEntryLimits& limits)
      : root_(&root), folder_(std::move(folder)), limits_(limits) {}

  std::string PathOf(std::string_view key) const;
  absl::Status CheckRoom(int64_t bytes) const;
  absl::Status Write(const std::string& path, std::string_view value) const;
  // No longer counts the file at `path`, which is about to be replaced or removed.
  void Uncount(const std::string& path);

  const fs::Dir* root_;
  std::string folder_;
  RemoteEntryLimits limits_;
  int64_t entries_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace cachewarm::agent
