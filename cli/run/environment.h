// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace cachewarm::cli {

// Returns the environment variables of every preset, by name, with values below the cache directory
// `directory` instead of the mount path of pods. Pure.
std::map<std::string, std::string> PresetVariables(const std::string& directory);

}  // namespace cachewarm::cli
