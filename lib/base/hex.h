// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace cachewarm {

// True if `text` has only lower-case hex digits; also if it is empty.
bool IsLowerHex(std::string_view text);

}  // namespace cachewarm
