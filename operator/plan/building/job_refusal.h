// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/plan_context.h"

namespace cachewarm::plan {

// True if a copy of the pod has no side effects, a node of the key has a free device that no pod of
// the workload needs, no quota prevents it, and the cluster's cap on builder Jobs is not reached.
// Otherwise sets PlanContext::job_refusal.
bool MayMakeJob(PlanContext& context, const LiveKey& key);

}  // namespace cachewarm::plan
