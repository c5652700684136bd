// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

// What a bundle may hold. Pure. Whatever is refused here is refused before a byte of it reaches the
// disk; messages name the member and the limit.
namespace cachewarm::bundle {

// The first four are settings of agents ("limits.files", ...) and flags of the CLI
// ("--limit-files"); the rest belongs to the format.
struct Limits {
  int64_t entries_max = 200'000;
  int64_t file_bytes_max = 8LL << 30;
  int64_t total_bytes_max = 64LL << 30;  // uncompressed, all files
  // Of a whole bundle above 64 MiB, frames uncompressed to compressed (a real vLLM cache has 141),
  // and files to uncompressed frames, which hold equal files once.
  int64_t ratio_max = 400;
  int64_t frame_raw_bytes_max = 16LL << 20;  // what one worker must hold in memory
  int path_bytes_max = 1024;
  int name_bytes_max = 255;
  int depth_max = 32;
};

enum class MemberType { kFile, kDirectory, kHardLink, kSymbolicLink, kDevice, kFifo, kOther };

// A tar member as its header describes it.
struct Member {
  std::string path;
  MemberType type = MemberType::kOther;
  std::string link;  // of a hard link: the path of the other one
  int64_t bytes = 0;
  int64_t mtime_ns = 0;
  unsigned mode = 0;  // 07777
  bool sparse = false;
  bool has_extended_attributes = false;
};

// Relative, UTF-8 without control characters, no empty, "." or ".." part, within the limits.
absl::Status CheckPath(std::string_view path, const Limits& limits);

// True when the last part begins with ".wh.": OCI image-spec 1.1, layer.md. To others such a file
// says that another one is gone; it cannot be carried.
bool IsWhiteout(std::string_view path);

// Path, type (regular files, directories, and hard links whose other path is within the bundle), no
// setuid, setgid or sticky bit, no sparse map, no extended attributes, size.
absl::Status CheckMember(const Member& member, const Limits& limits);

// Of a whole bundle, before it is fetched: counts, sum and ratios.
struct Totals {
  int64_t entries = 0;
  int64_t raw_bytes = 0;    // of all files
  int64_t frame_bytes = 0;  // of all frames, uncompressed
  int64_t packed_bytes = 0;
};
absl::Status CheckTotals(const Totals& totals, const Limits& limits);

}  // namespace cachewarm::bundle
