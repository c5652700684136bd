// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/codec/json_value.h"

namespace cachewarm::golden {

// Returns block-style YAML with sorted members, for files that people read and compare.
std::string YamlText(const codec::Json& value);

}  // namespace cachewarm::golden
