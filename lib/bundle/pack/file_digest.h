// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/digest.h"
#include "lib/bundle/packer.h"

namespace cachewarm::bundle {

// ABORTED: the file is not what it was when its size was read.
absl::Status ChangedWhileRead(const PackFile& file);

// The sha256 of the whole file. ABORTED when it is not as long as was said; else the error of
// `open` or of the Source.
absl::StatusOr<Digest> DigestOfFile(const PackFile& file);

}  // namespace cachewarm::bundle
