// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace cachewarm::fs {

// Converts the error of a system call to a status with the message "<what>: <strerror>". Codes:
//   RESOURCE_EXHAUSTED     the disk is full, or a quota or the file size limit is exceeded
//   PERMISSION_DENIED      the path contains a symbolic link (ELOOP), or leads out of the directory
//                          that it must stay in or to another file system (EXDEV)
//   UNAVAILABLE            I/O error; not DATA_LOSS, because the stored bytes may be correct
//   FAILED_PRECONDITION    the kernel lacks the system call
absl::Status ErrnoStatus(int error, std::string_view what);

}  // namespace cachewarm::fs
