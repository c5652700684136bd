// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace cachewarm::annotations {

// Returns the name of a workload's CacheWarmup: the workload's name as a DNS label of at most 45
// characters (see crds/cachewarmups.yaml). Replaces dots by dashes. A longer name is truncated and
// ends in a hash of the whole name, so that two workloads whose names differ only at the end have
// different names here.
std::string WarmupName(std::string_view workload);

}  // namespace cachewarm::annotations
