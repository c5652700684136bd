// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"

// Encodes the entry list for the config: 20,000 entries take 1.4 MB. As JSON objects they would
// take 5.7 MB and more time to parse than their files to write.
//
// Format: one line per entry, in the order of the list, with tabs between the fields
//   path, kind, size, sha256 as 64 hex digits, frame[, mtime in nanoseconds unless it is 0]
//   compressed as one zstd frame in base64. Pure.
namespace cachewarm::bundle {

inline constexpr int64_t kEntryLinesBytesMax = 64LL << 20;

struct EntryList {
  int64_t line_bytes = 0;  // of the lines, uncompressed
  std::string packed;
};

// Encodes `entries`; deterministic for one version of zstd. INVALID_ARGUMENT for a kind with
// control characters and for more than kEntryLinesBytesMax.
absl::StatusOr<EntryList> WriteEntryList(const std::vector<Entry>& entries);

// Decodes and checks a list. Paths must pass CheckPath() of policy.h, be sorted and unique; a size
// is at most 1 TiB. INVALID_ARGUMENT names line and field.
absl::StatusOr<std::vector<Entry>> ReadEntryList(const EntryList& list, int64_t entries_max);

}  // namespace cachewarm::bundle
