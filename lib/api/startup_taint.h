// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "lib/api/names.h"

namespace cachewarm::api {

// True if `key` is one of kWarmingTaints.
inline bool IsStartupTaint(std::string_view key) {
  return std::find(std::begin(kWarmingTaints), std::end(kWarmingTaints), key) !=
         std::end(kWarmingTaints);
}

}  // namespace cachewarm::api
