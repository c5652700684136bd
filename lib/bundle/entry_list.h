// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"

// The entry list as a config carries it: 20,000 entries are 1.4 MB there, as JSON objects they
// would be 5.7 MB and take longer to parse than their files to write.
//
// One line an entry, in the order of the list, fields apart by a tab:
//   path, kind, size, sha256 as 64 hex digits, frame[, mtime in nanoseconds unless it is 0]
// compressed as one zstd frame, and that as base64. Pure.
namespace cachewarm::bundle {

inline constexpr int64_t kEntryLinesBytesMax = 64LL << 20;

struct EntryList {
  int64_t line_bytes = 0;  // of the lines, uncompressed
  std::string packed;
};

// The same entries give the same text with one version of zstd. INVALID_ARGUMENT when they cannot
// be written so: a kind with control characters, more than kEntryLinesBytesMax.
absl::StatusOr<EntryList> WriteEntryList(const std::vector<Entry>& entries);

// Strict: INVALID_ARGUMENT names line and field. A size is at most 1 TiB. Paths pass policy.h's
// CheckPath and are sorted, each once.
absl::StatusOr<std::vector<Entry>> ReadEntryList(const EntryList& list, int64_t entries_max);

}  // namespace cachewarm::bundle
