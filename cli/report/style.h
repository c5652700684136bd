// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace cachewarm::cli::report {

// Returns the stylesheet of the page. It has no '<' and no '&', so that it is also character data
// of XML.
std::string_view Stylesheet();

}  // namespace cachewarm::cli::report
