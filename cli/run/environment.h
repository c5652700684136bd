// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "lib/caches/cache_table.h"

namespace cachewarm::cli {

// Returns the environment variables of `table`, by name, with values below the cache directory
// `directory` instead of the mount path of pods. Pure.
std::map<std::string, std::string> PresetVariables(
    const std::string& directory,
    const caches::CacheTable& table = caches::CacheTable::DefaultPresets());

}  // namespace cachewarm::cli
