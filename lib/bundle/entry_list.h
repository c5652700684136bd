// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"

// Encodes the list of a bundle's files for the bundle's config. 20,000 entries take 1.4 MB. As JSON
// objects they would take 5.7 MB, and parsing them would take longer than writing the files to
// disk.
//
// Format: one line per Entry of format.h, in the order of the list, with tabs between the fields
//   path, kind, size, sha256 as 64 hex digits, frame[, mtime in nanoseconds unless it is 0]
// All lines together are compressed as one zstd frame, which is encoded in base64. Pure.
namespace cachewarm::bundle {

inline constexpr int64_t kEntryLinesBytesMax = 64LL << 20;

struct EntryList {
  int64_t line_bytes = 0;  // total size of the lines before compression
  std::string packed;
};

// Encodes `entries`; deterministic for one version of zstd. INVALID_ARGUMENT if a kind is not UTF-8
// or contains control characters, or if the lines take more than kEntryLinesBytesMax bytes.
absl::StatusOr<EntryList> WriteEntryList(const std::vector<Entry>& entries);

// Decodes and checks a list of at most `entries_max` entries. Paths must be sorted and unique and
// pass CheckPath() of policy.h, and a file may have at most 1 TiB. Otherwise INVALID_ARGUMENT,
// naming the line, and the field if the fault is in one field.
absl::StatusOr<std::vector<Entry>> ReadEntryList(const EntryList& list, int64_t entries_max);

}  // namespace cachewarm::bundle
