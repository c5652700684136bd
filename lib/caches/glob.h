// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace cachewarm::caches {

// Matches a whole relative path: "?" is one character, "*" any run of characters, neither crosses
// "/"; the component "**" is any number of components, none included. No classes, no escapes.
// Costs at most |pattern| x |path| steps, whatever either holds.
bool GlobMatches(std::string_view pattern, std::string_view path);

}  // namespace cachewarm::caches
