// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace cachewarm::kube {

// The content of a file of at most `bytes_max`, without blanks at its end. Errors are
// those of fs::ReadNamedFile.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t bytes_max = 64U << 10U);

}  // namespace cachewarm::kube
