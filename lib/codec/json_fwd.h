// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace cachewarm::codec {

// The JSON value used everywhere. Include this header to name the type, "lib/codec/json_value.h" to
// use its members.
using Json = nlohmann::json;

}  // namespace cachewarm::codec
