// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace cachewarm::fs {

// The status of a failed system call: "<what>: <strerror>". Full disk, quota and file size limit
// are RESOURCE_EXHAUSTED; a symbolic link or mount in the way (ELOOP, EXDEV) is PERMISSION_DENIED;
// an I/O error is UNAVAILABLE (no byte was seen, so none can be called wrong); an unknown system
// call is FAILED_PRECONDITION.
absl::Status ErrnoStatus(int error, std::string_view what);

}  // namespace cachewarm::fs
