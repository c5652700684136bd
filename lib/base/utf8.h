// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace cachewarm {

// Returns the length of the well-formed UTF-8 sequence at `text[at]` (RFC 3629, Unicode table 3-7),
// or 0 if there is none.
size_t Utf8SequenceLength(std::string_view text, size_t at);

bool IsUtf8(std::string_view text);

// True if `text` has a control character of ASCII (U+0000 to U+001F, U+007F).
bool HasAsciiControl(std::string_view text);

}  // namespace cachewarm
