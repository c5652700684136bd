// SPDX-License-Identifier: Apache-2.0
#include "lib/base/hex.h"

namespace cachewarm {

bool IsLowerHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace cachewarm
