// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lib/base/digest.h"

namespace cachewarm {

// The SHA-256 of each text, as DigestOf() gives it. One thread hashes two texts at a time where
// the processor has the instructions for it: each waits most of the time for its own last result,
// so that two take little longer than one.
std::vector<Digest> DigestsOf(std::span<const std::string_view> texts);

}  // namespace cachewarm
