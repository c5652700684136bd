// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace cachewarm::annotations {

// Returns the name of a workload's CacheWarmup: the workload's name as a DNS label of at most 45
// characters (see crds/cachewarmups.yaml). Replaces dots by dashes and truncates.
std::string WarmupName(std::string_view workload);

}  // namespace cachewarm::annotations
