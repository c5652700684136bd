// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "agent/config.h"

// Inside config only.
namespace cachewarm::agent {

// One setting: every place it can come from and what it does. Lists are given as "a,b" in flags
// and variables and as a YAML list in the file.
struct Setting {
  std::string_view flag;
  std::string_view environment;
  std::string_view key;  // in the file, "registry.caFile" when nested; empty: not settable there
  std::string_view fallback;
  absl::Status (*set)(Config& config, const std::string& value);
  std::string_view help;
};

// In the order of --help.
std::span<const Setting> Settings();

}  // namespace cachewarm::agent
