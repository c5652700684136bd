// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "operator/plan/plan_context.h"

// The other pods of a builder's group, each of which has compiled for itself on its own node
// (docs/design/0018-ranks-of-a-group.md). Pure.
namespace cachewarm::plan {

// Those whose directories are still to be added to the builder's, the first to start first: pods of
// its group and key that run; where they run to their end, the indexed ones that began before the
// builder had ended and have not failed. Empty where the builder is of no group.
std::vector<const PodView*> RanksLeft(const PlanContext& context,
                                      const api::BuilderStatus& builder);

// When `pod`, the builder or one of its ranks, had done its first start. The builder of a group has
// not before all of them have: often only the leader has a probe, and it answers for the others.
WallTime ReadyInGroup(const PlanContext& context, const PodView& pod,
                      const api::BuilderStatus& builder);

}  // namespace cachewarm::plan
