// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/digest.h"
#include "lib/bundle/packer.h"

namespace cachewarm::bundle {

// Number of files that one job of ForEachBatch() hashes.
inline constexpr size_t kFilesPerJob = 64;

// Returns the error ABORTED, with the message that the file changed while it was read.
absl::Status ChangedWhileRead(const PackFile& file);

// Reads the whole file and returns its sha256. ABORTED if its size differs from `file.bytes`;
// otherwise the error of `file.open` or of the source that it returned.
absl::StatusOr<Digest> DigestOfFile(const PackFile& file);

}  // namespace cachewarm::bundle
