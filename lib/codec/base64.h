// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cachewarm::codec {

// Returns the base64 text of `bytes` (RFC 4648 §4), with padding.
std::string EncodeBase64(std::string_view bytes);
// Decodes text of the form that EncodeBase64() returns. Skips line breaks and blanks, because YAML
// folds long values. INVALID_ARGUMENT for anything else, including missing padding.
absl::StatusOr<std::string> DecodeBase64(std::string_view text);

}  // namespace cachewarm::codec
