// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "operator/plan/plan_context.h"

// The other pods of a builder's group, each of which compiles on its own node
// (docs/design/0018-ranks-of-a-group.md). Pure.
namespace cachewarm::plan {

// Returns the pods whose directories are still to be added to the builder's bundle, earliest start
// first: the running pods with its group and key. Of pods that run to completion, only those that
// have an index, started before the builder's first start ended, and have not failed. Empty if the
// builder has no group.
std::vector<const PodView*> RanksLeft(const PlanContext& context,
                                      const api::BuilderStatus& builder);

// Returns when the first start of `pod`, the builder or one of its ranks, ended; zero while it is
// in progress. The first start of the builder of a group lasts until those of all ranks have ended:
// often only the leader has a readiness probe, which reports for the whole group.
WallTime ReadyInGroup(const PlanContext& context, const PodView& pod,
                      const api::BuilderStatus& builder);

}  // namespace cachewarm::plan
