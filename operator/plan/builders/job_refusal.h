// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operator/plan/plan_context.h"

namespace cachewarm::plan {

// Returns true if a builder Job for `key` may be created; otherwise sets Builds::job_refusal.
// The conditions are:
//  - The Job's pod, a copy of the workload's pod, cannot disturb the workload.
//  - A node with the key's GPU type and CPU class has a free device that no pod of the workload
//    needs.
//  - Neither a quota nor the cluster's limit of builder Jobs is exhausted.
bool MayMakeJob(const Context& context, Builds& builds, const LiveKey& key);

}  // namespace cachewarm::plan
