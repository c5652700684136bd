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

// How a file of the journal below .state is written and read. Only the agent can write there, and
// a damaged disk can too: what is read is bounded and may be refused.
namespace cachewarm::agent {

inline constexpr mode_t kRecordMode = 0600;
inline constexpr int64_t kRecordBytesMax = int64_t{1} << 20;  // of one that tells of one thing

// The JSON object in `path`. NOT_FOUND; INVALID_ARGUMENT names the file.
absl::StatusOr<codec::Json> ReadRecord(const fs::Dir& root, const std::string& path,
                                       int64_t bytes_max);

// Replaces `path` in one rename.
absl::Status WriteRecord(const fs::Dir& root, const std::string& path, const codec::Json& object,
                         fs::Durable durable = fs::Durable::kNow);

// Calls `visit` with the path of every record in `folder`, at most 10,000.
absl::Status ForEachRecord(const fs::Dir& root, std::string_view folder,
                           const std::function<void(const std::string& path)>& visit);

}  // namespace cachewarm::agent
