// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "operator/plan/plan_context.h"

namespace cachewarm::plan {

// The bundles that every node of one target should have, in the order of their keys, at most 16:
// that of each live key, and the newest other one, which is the seed of a key without a bundle and
// what a roll back finds.
std::vector<api::WantedBundle> WantedBundles(const PlanContext& context, size_t target);

}  // namespace cachewarm::plan
