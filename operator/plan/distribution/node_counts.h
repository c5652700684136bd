// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/distribution/node_entries.h"
#include "operator/plan/plan_context.h"

namespace cachewarm::plan {

// Sets the numbers of nodes in `bundle` (desired, ready, failed, waiting) and its message, which
// describes the first failure or, without failures, the wait for fetch slots.
void CountNodes(const Context& context, const Wanted& wanted, api::BundleStatus& bundle);

}  // namespace cachewarm::plan
