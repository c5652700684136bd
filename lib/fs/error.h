// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace cachewarm::fs {

// Converts the error of a system call to a status with the message "<what>: <strerror>". Codes:
// RESOURCE_EXHAUSTED for a full disk, quota and file size limit; PERMISSION_DENIED for a symbolic
// link in the path (ELOOP), and for a path out of the directory or to another file system (EXDEV);
// UNAVAILABLE for an I/O error, which does not prove that stored bytes are wrong;
// FAILED_PRECONDITION for a system call that the kernel lacks.
absl::Status ErrnoStatus(int error, std::string_view what);

}  // namespace cachewarm::fs
