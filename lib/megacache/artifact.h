// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// The portable compile cache of torch ("mega-cache"): the bytes that
// torch.compiler.save_cache_artifacts() returns and torch.compiler.load_cache_artifacts() takes.
// Source of the format: torch/compiler/_cache.py and torch/utils/_appending_byte_serializer.py of
// torch 2.8 to 2.15. Pure.
//
//   CRC-32 of the rest (4 bytes), version (u64), groups until the end
//   group:  type (string), number of entries (u64), entries
//   entry:  key (string), content (u64 length, bytes)
//   string: u64 length, base64 of UTF-8
//
// All integers are big-endian. Contents are pickles or JSON; nothing here interprets a pickle.
namespace cachewarm::megacache {

// The version that Parse() reads and Write() writes.
inline constexpr uint64_t kVersion = 1;

// One entry of a cache.
struct Entry {
  std::string type;          // "inductor", "aot_autograd", ...
  std::string key;           // UTF-8
  std::string_view content;  // a part of the parsed bytes
};

struct ArtifactLimits {
  size_t entries_max = 200'000;
  size_t type_bytes_max = 64;
  size_t key_bytes_max = 1024;
};

// Parses an artifact. The contents of the entries point into `bytes`. Errors: DATA_LOSS if the
// checksum does not match or a length leads beyond the end; INVALID_ARGUMENT for bytes of another
// format or version, which the message names, and above a limit.
absl::StatusOr<std::vector<Entry>> Parse(std::string_view bytes, const ArtifactLimits& limits);

// Returns the artifact with these entries: one group per type, in the order of their first entries.
std::string Write(const std::vector<Entry>& entries);

}  // namespace cachewarm::megacache
