// SPDX-License-Identifier: Apache-2.0
#include "cli/run/environment.h"

#include <utility>

#include "lib/api/names.h"

namespace cachewarm::cli {

std::map<std::string, std::string> PresetVariables(const std::string& directory,
                                                   const caches::CacheTable& table) {
  std::map<std::string, std::string> variables;
  for (const api::EnvVar& preset : table.Env()) {
    std::string value = preset.value;
    if (value.starts_with(api::kMountPath)) {
      value.replace(0, api::kMountPath.size(), directory);
    }
    variables.emplace(preset.name, std::move(value));
  }
  return variables;
}

}  // namespace cachewarm::cli
