// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "lib/bundle/policy.h"

namespace cachewarm::bundle {

// Returns the header that libarchive writes for a member whose fields fit into one ustar block
// (POSIX.1-1988); nullopt for any other member. Nearly all members are like that, and libarchive
// needs a new archive for each header. Pure.
std::optional<std::string> UstarHeader(const Member& member);

}  // namespace cachewarm::bundle
