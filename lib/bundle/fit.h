// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "lib/bundle/format.h"

namespace cachewarm::bundle {

// Checks that a machine of this GPU type and CPU class may read the bundle, by the facts in its
// config. A bundle with GPU code must have some that the machine's GPU runs (fingerprint::RunsOn).
// Call before any file of the bundle is used: a tag proves nothing about its content.
// INVALID_ARGUMENT names both machines. Pure.
absl::Status CheckFit(const Bundle& bundle, std::string_view gpu_type, std::string_view cpu_class);

}  // namespace cachewarm::bundle
