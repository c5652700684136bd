// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/plan_context.h"

namespace cachewarm::plan {

// A copy has no side effects, a node of the key has a device that no pod of the workload needs, no
// quota keeps one from being made, and the cluster's cap is not reached; else notes why in
// PlanContext::job_refusal.
bool MayMakeJob(PlanContext& context, const LiveKey& key);

}  // namespace cachewarm::plan
