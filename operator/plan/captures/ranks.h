// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "operator/plan/plan_context.h"

// Captures the ranks of a builder: the other pods of its group, each of which compiles on its own
// node (docs/design/0018-ranks-of-a-group.md). Pure.
namespace cachewarm::plan {

// Returns the pods whose directories must still be added to the builder's bundle, earliest start
// first; empty if the builder has no group. These are the running pods with the builder's group and
// key. A pod that runs to completion must also have an index label and have started before the
// builder completed its first start (see ReadyAt); it counts even after it has succeeded.
std::vector<const PodView*> RanksLeft(const Context& context, const api::BuilderStatus& builder);

// True if the builder's group has another pod, also one with another key or one that has succeeded.
// Such pods may tune together, so none of them may get a part of the autotune results.
bool IsGrouped(const Context& context, const api::BuilderStatus& builder);

// Returns when `pod` (the builder or one of its ranks) completed its first start (see ReadyAt);
// zero if it has not. Until the builder is captured, all its ranks must have completed their first
// starts too, and the result is the latest of these times. The reason: often only the leader of a
// group has a readiness probe, which reports for the whole group. If another pod of the group is
// the builder, that pod would otherwise count as ready too early.
WallTime ReadyInGroup(const Context& context, const PodView& pod,
                      const api::BuilderStatus& builder);

}  // namespace cachewarm::plan
