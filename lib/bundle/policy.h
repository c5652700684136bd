// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

// Decides which content a bundle may have. A bundle is untrusted: it is checked before anything of
// it is written to disk. Errors are INVALID_ARGUMENT and name the member or the limit. Pure.
namespace cachewarm::bundle {

// Users can change the first four limits: by settings of the agent ("limits.files", ...) and flags
// of the CLI ("--limit-files", ...). The format fixes the others.
struct Limits {
  int64_t entries_max = 200'000;
  int64_t file_bytes_max = 8LL << 30;
  int64_t total_bytes_max = 64LL << 30;  // uncompressed size of all files
  // Maximum of two ratios, checked only for bundles above 64 MiB. The first is that of compression:
  // uncompressed to compressed size of the frames (141 for a real vLLM cache). The second is that
  // of deduplication: size of the files to uncompressed size of the frames, in which equal files
  // are stored once.
  int64_t ratio_max = 400;
  int64_t frame_raw_bytes_max = 16LL << 20;  // limits memory: each worker thread holds a frame
  int path_bytes_max = 1024;
  int name_bytes_max = 255;
  int depth_max = 32;
};

enum class MemberType { kFile, kDirectory, kHardLink, kSymbolicLink, kDevice, kFifo, kOther };

// The header of a tar member.
struct Member {
  std::string path;
  MemberType type = MemberType::kOther;
  std::string link;  // target of a hard link
  int64_t bytes = 0;
  int64_t mtime_ns = 0;
  unsigned mode = 0;  // permission, setuid, setgid and sticky bits (07777)
  bool sparse = false;
  bool has_extended_attributes = false;
};

// Checks that a path is relative and UTF-8 without control characters, has no empty, "." or ".."
// part, and is within the limits.
absl::Status CheckPath(std::string_view path, const Limits& limits);

// True if the last part of the path begins with ".wh." (OCI image-spec 1.1, layer.md). OCI tools
// interpret such a file as the removal of another file, so no file of a bundle may have such a
// name.
bool IsWhiteout(std::string_view path);

// Checks path, size and type: a regular file, a directory, or a hard link whose target is a valid
// path. Rejects members with a setuid, setgid or sticky bit, a sparse map or extended attributes.
absl::Status CheckMember(const Member& member, const Limits& limits);

// Sums over a whole bundle, known before it is fetched.
struct Totals {
  int64_t entries = 0;
  int64_t raw_bytes = 0;     // size of all files
  int64_t frame_bytes = 0;   // uncompressed size of all frames
  int64_t packed_bytes = 0;  // size of config and compressed layers
};
// Checks the number of files, the total size, and both ratios of Limits::ratio_max.
absl::Status CheckTotals(const Totals& totals, const Limits& limits);

}  // namespace cachewarm::bundle
