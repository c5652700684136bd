// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "operator/plan/plan_context.h"

// The other pods of a builder's group, each of which compiles on its own node
// (docs/design/0018-ranks-of-a-group.md). Pure.
namespace cachewarm::plan {

// Returns the pods whose directories are still to be added to the builder's, earliest start first:
// running pods of its group and key; of pods that run to completion, those with an index that
// started before the builder ended and have not failed. Empty if the builder has no group.
std::vector<const PodView*> RanksLeft(const PlanContext& context,
                                      const api::BuilderStatus& builder);

// Returns when `pod`, the builder or one of its ranks, ended its first start. For the builder of a
// group that is when all ranks have: often only the leader has a probe, and it answers for the
// others.
WallTime ReadyInGroup(const PlanContext& context, const PodView& pod,
                      const api::BuilderStatus& builder);

}  // namespace cachewarm::plan
