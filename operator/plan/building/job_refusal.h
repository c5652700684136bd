// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/plan_context.h"

namespace cachewarm::plan {

// True if a builder Job for `key` may be created: a copy of the workload's pod has no side effects,
// a node of the key has a free device that no pod of the workload needs, no quota prevents it, and
// the cluster's limit of builder Jobs is not reached. Otherwise sets PlanContext::job_refusal.
bool MayMakeJob(PlanContext& context, const LiveKey& key);

}  // namespace cachewarm::plan
