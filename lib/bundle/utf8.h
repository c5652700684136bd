// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace cachewarm::bundle {

// True for well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates) without control
// characters (U+0000 to U+001F, U+007F to U+009F).
bool IsPlainUtf8(std::string_view text);

// Returns `text` for use in messages: each byte that is not printable ASCII is replaced by \xNN.
std::string Printable(std::string_view text);

}  // namespace cachewarm::bundle
