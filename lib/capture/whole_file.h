// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lib/caches/placement.h"
#include "lib/fs/fd.h"

namespace cachewarm::capture {

// Returns the bytes [offset, offset + size) of an open file, fewer only at its end.
absl::StatusOr<std::string> ReadRange(const fs::Fd& file, uint64_t offset, size_t size);

// Calls caches::CheckWhole() for an open file of `bytes` bytes.
absl::Status CheckWholeFile(const fs::Fd& file, const caches::Placement& placement,
                            const std::string& path, int64_t bytes);

}  // namespace cachewarm::capture
