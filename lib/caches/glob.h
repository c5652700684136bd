// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace cachewarm::caches {

// Matches a whole relative path. "?" matches one character and "*" any run of characters, both
// within one component; the component "**" matches any number of components, also none. Character
// classes and escapes are not supported. Takes at most |pattern| x |path| steps for any input.
bool GlobMatches(std::string_view pattern, std::string_view path);

}  // namespace cachewarm::caches
