// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/digest.h"
#include "lib/bundle/packer.h"

namespace cachewarm::bundle {

// Returns ABORTED: the file changed after its size was read.
absl::Status ChangedWhileRead(const PackFile& file);

// Returns the sha256 of the whole file. ABORTED if its size differs from `file.bytes`; else the
// error of `open` or of the source.
absl::StatusOr<Digest> DigestOfFile(const PackFile& file);

}  // namespace cachewarm::bundle
