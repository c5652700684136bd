// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/plan/fetching/fetch_slots.h"
#include "operator/plan/plan_context.h"

// The entries of one NodeCache that belong to this warmup: what stands there and what should. Pure.
namespace cachewarm::plan {

// What the nodes should have, the same for all of them but for their targets and turns.
struct Wanted {
  std::vector<std::vector<api::WantedBundle>> by_target;  // as PlanContext::targets
  std::vector<std::string> run_as;                        // directories to prepare
  FetchSlots slots;
};

bool Contains(const std::vector<api::WantedBundle>& bundles, const Digest& digest);

// What `node` was told about this warmup; nullptr: nothing.
const api::WantedWarmup* PresentEntry(const PlanContext& context, const NodeState& node);

// Nothing is told to `node` about this warmup, and as many others are in its NodeCache as go there.
bool IsFull(const PlanContext& context, const NodeState& node);

// The node would have to fetch `digest`, and was not told to yet.
bool NeedsFetch(const PlanContext& context, const NodeState& node, const Digest& digest);

// What the node, an index of PlanContext::nodes with a NodeCache, should be told in place of what
// it was; nothing where that is the same.
std::optional<api::NodeCacheSpec> ChangedEntries(const PlanContext& context, const Wanted& wanted,
                                                 size_t node);

}  // namespace cachewarm::plan
