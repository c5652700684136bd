// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/fetching/entries.h"
#include "operator/plan/plan_context.h"

namespace cachewarm::plan {

// Fills in the distribution of `bundle`: nodes desired, ready, failed and waiting, and a message
// that names the first failure, or the wait for fetch slots.
void CountNodes(const PlanContext& context, const Wanted& wanted, api::BundleStatus& bundle);

}  // namespace cachewarm::plan
