// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace cachewarm::caches {

// Returns true if the pattern matches the whole relative path. "?" matches one character and "*"
// any number of characters, both within one component. The component "**" matches zero or more
// components. Character classes and escapes are not supported. Takes at most |pattern| x |path|
// steps for any input.
bool GlobMatches(std::string_view pattern, std::string_view path);

}  // namespace cachewarm::caches
