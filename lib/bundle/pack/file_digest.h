// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/digest.h"
#include "lib/bundle/packer.h"

namespace cachewarm::bundle {

// Returns the error ABORTED with the message that the file changed after its size was read.
absl::Status ChangedWhileRead(const PackFile& file);

// Reads the whole file and returns its sha256. ABORTED if its size differs from `file.bytes`;
// otherwise the error of `open` or of the source.
absl::StatusOr<Digest> DigestOfFile(const PackFile& file);

}  // namespace cachewarm::bundle
