// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lib/base/digest.h"

namespace cachewarm {

// Returns HMAC-SHA-256 (RFC 2104) of `bytes` under the secret `key`. Pure.
Digest HmacOf(std::string_view key, std::string_view bytes);

}  // namespace cachewarm
