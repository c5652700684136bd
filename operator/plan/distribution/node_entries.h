// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/plan/distribution/fetch_slots.h"
#include "operator/plan/plan_context.h"

// Finds this warmup's present entries in one NodeCache and computes the desired ones. Pure.
namespace cachewarm::plan {

// The bundles and directories that each node should have. Nodes of the same GPU type and CPU class
// (a Target) should have the same bundles, but a node gets a new bundle only with a fetch slot.
struct Wanted {
  const Bundles& bundles;
  // CountedStarts::windows
  const std::map<size_t, std::vector<api::StartWindow>>& windows;
  const api::Starts& starts;                                   // CountedStarts::starts
  std::vector<std::vector<api::WantedBundle>> by_target = {};  // indexed like PlanContext::targets
  // The bundles of nodes on which a bundle is proven, by index of the node, instead of by_target.
  std::map<size_t, std::vector<api::WantedBundle>> by_node = {};
  std::vector<std::string> run_as;  // names of the directories to prepare
  FetchSlots slots = {};
};

// Returns the bundles that the node should have; `node` is an index into PlanContext::nodes and
// must have a target.
const std::vector<api::WantedBundle>& BundlesOn(const Context& context, const Wanted& wanted,
                                                size_t node);

bool Contains(const std::vector<api::WantedBundle>& bundles, const Digest& digest);

// Returns the entry of the warmup `uid` in the NodeCache; nullptr if there is none.
const api::WantedWarmup* PresentEntry(const std::string& uid, const NodeState& node);

// Returns the latest time since which the node has the bundle active: its publication, or the end
// of its fetch if the node was granted one later. A container that started before that time may
// have mounted an earlier tree. nullopt if the bundle is not active.
std::optional<WallTime> ActiveSince(const Context& context, const NodeState& node,
                                    const api::BundleStatus& bundle);

// True if the warmup `uid` cannot use the node: the NodeCache has no entry of it, and already has
// the maximum number of entries, all of other warmups.
bool IsFull(const std::string& uid, const NodeState& node);
inline bool IsFull(const Context& context, const NodeState& node) {
  return IsFull(context.uid(), node);
}

// True if the bundle `digest` is not active on the node, and this warmup's entry in the NodeCache
// does not list it yet.
bool NeedsFetch(const Context& context, const NodeState& node, const Digest& digest);

// Returns this warmup's desired entries in the NodeCache of `node`, an index into
// PlanContext::nodes; nullopt if they equal the present ones. The node must have a NodeCache.
std::optional<api::NodeCacheSpec> ChangedEntries(const PlanContext& context, const Wanted& wanted,
                                                 size_t node);

}  // namespace cachewarm::plan
