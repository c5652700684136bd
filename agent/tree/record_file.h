// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/codec/json.h"
#include "lib/fs/dir.h"
#include "lib/fs/file.h"

// Reads and writes files of the journal below .state. Only the agent writes there, but the disk may
// be damaged, so reads are limited and checked.
namespace cachewarm::agent {

inline constexpr mode_t kRecordMode = 0600;
// Maximum bytes of a record in JSON.
inline constexpr int64_t kRecordBytesMax = int64_t{1} << 20;

// Reads the JSON object in `path`. Errors: NOT_FOUND; INVALID_ARGUMENT names the file.
absl::StatusOr<codec::Json> ReadRecord(const fs::Dir& root, const std::string& path,
                                       int64_t bytes_max);

// Replaces `path` atomically by a rename.
absl::Status WriteRecord(const fs::Dir& root, const std::string& path, const codec::Json& object,
                         fs::Durable durable = fs::Durable::kNow);

// Calls `visit` with the path of every record in `folder`. Errors: RESOURCE_EXHAUSTED if the folder
// has more than 10,000 entries.
absl::Status ForEachRecord(const fs::Dir& root, std::string_view folder,
                           const std::function<void(const std::string& path)>& visit);

}  // namespace cachewarm::agent
