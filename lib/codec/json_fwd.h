// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace cachewarm::codec {

// The JSON value of the whole tree. Cheap to name here; include "lib/codec/json_value.h" where
// its members are used.
using Json = nlohmann::json;

}  // namespace cachewarm::codec
