// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/plan_context.h"

namespace cachewarm::plan {

// Returns true if a builder Job for `key` may be created; otherwise sets PlanContext::job_refusal.
// A copy of the workload's pod must have no side effects. A node of the key must have a free device
// that no pod of the workload needs. Neither a quota nor the cluster's limit of builder Jobs may be
// exhausted.
bool MayMakeJob(PlanContext& context, const LiveKey& key);

}  // namespace cachewarm::plan
