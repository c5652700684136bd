// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "operator/plan/plan_context.h"

namespace cachewarm::plan {

// Returns the bundles that every node of `target`, an index into PlanContext::targets, should have,
// sorted by key, at most 16: one for each key in use there, and the newest other bundle, which
// seeds a key without a bundle and serves a rollback.
std::vector<api::WantedBundle> WantedBundles(const PlanContext& context, size_t target);

}  // namespace cachewarm::plan
