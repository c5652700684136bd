// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cachewarm::codec {

// RFC 4648 §4, with padding.
std::string EncodeBase64(std::string_view bytes);
// Line breaks and blanks are skipped, as YAML folds long values. INVALID_ARGUMENT for anything
// else that EncodeBase64() does not write, missing padding too.
absl::StatusOr<std::string> DecodeBase64(std::string_view text);

}  // namespace cachewarm::codec
