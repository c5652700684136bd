// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cachewarm::kube {

// RFC 4648 §4 with padding; line breaks are skipped, as YAML folds long values.
absl::StatusOr<std::string> DecodeBase64(std::string_view text);

}  // namespace cachewarm::kube
