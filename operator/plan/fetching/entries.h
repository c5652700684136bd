// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/plan/fetching/fetch_slots.h"
#include "operator/plan/plan_context.h"

// This warmup's entries in one NodeCache, present and desired. Pure.
namespace cachewarm::plan {

// The desired state of all nodes; it differs between nodes only by target and fetch slot.
struct Wanted {
  std::vector<std::vector<api::WantedBundle>> by_target;  // as PlanContext::targets
  std::vector<std::string> run_as;                        // directories to prepare
  FetchSlots slots;
};

bool Contains(const std::vector<api::WantedBundle>& bundles, const Digest& digest);

// Returns this warmup's entry in the NodeCache; nullptr if there is none.
const api::WantedWarmup* PresentEntry(const PlanContext& context, const NodeState& node);

// True if the NodeCache has no entry of this warmup and already the maximum of other warmups.
bool IsFull(const PlanContext& context, const NodeState& node);

// True if the node lacks `digest` and its NodeCache does not list it yet.
bool NeedsFetch(const PlanContext& context, const NodeState& node, const Digest& digest);

// Returns the desired entries of the node, an index into PlanContext::nodes with a NodeCache;
// nullopt if they equal the present ones.
std::optional<api::NodeCacheSpec> ChangedEntries(const PlanContext& context, const Wanted& wanted,
                                                 size_t node);

}  // namespace cachewarm::plan
