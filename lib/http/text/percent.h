// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace cachewarm::http {

// Percent-encodes all characters of `text` except the unreserved ones (RFC 3986 §2.3), for one path
// segment or one query value.
std::string PercentEncode(std::string_view text);

}  // namespace cachewarm::http
