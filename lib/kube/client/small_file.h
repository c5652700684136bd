// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace cachewarm::kube {

// Returns the content of a file of at most `bytes_max` bytes, without trailing blanks and line
// breaks. Errors: those of fs::ReadNamedFile.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max = 64U << 10U);

}  // namespace cachewarm::kube
