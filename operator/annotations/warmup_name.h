// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace cachewarm::annotations {

// The name of the CacheWarmup of a workload: the workload's own, as a DNS label of at most 45
// characters (crds/cachewarmups.yaml says why). Dots become dashes, what is too long is cut.
std::string WarmupName(std::string_view workload);

}  // namespace cachewarm::annotations
