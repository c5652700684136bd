// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/plan/plan_context.h"

// Fetch slots limit how many nodes fetch at the same time, because a store that serves all nodes of
// a cluster at once serves none of them in time. At most Settings::fetch_nodes_max nodes have a
// slot, over all warmups. Nodes with a bound pod that has not started come first. All state is read
// from NodeCaches, so that a new leader of the operator continues with the same slots. If two
// warmups are planned at the same moment, neither sees the slots of the other, so together they may
// exceed the limit.
namespace cachewarm::plan {

struct FetchSlots {
  std::set<size_t> bound;    // nodes with a bound pod of the warmup that has not started
  std::set<size_t> granted;  // nodes that must fetch and got a slot
  // Nodes that must fetch and have a live agent but got no slot, each with the number of slot
  // durations that it must wait.
  std::map<size_t, int> waiting;
};

// True if the agent's pod is Ready, or the agent has reported within the last 30 s: a new agent
// reports before its readiness probe passes.
bool IsLive(const NodeView& view, WallTime now);

// True while the node holds a fetch slot for `wanted`, the entry of one warmup in its NodeCache.
// The node holds the slot while three conditions are met: a bundle of the entry is neither active
// nor permanently failed there (a store error is not permanent), the agent is live, and the slot
// has not expired. A slot lasts two minutes plus one second per MiB to fetch.
bool IsFetching(const NodeView& view, const api::WantedWarmup& wanted, WallTime now);

// Assigns the free slots to `to_fetch`, indices into PlanContext::nodes of nodes that lack a wanted
// bundle: first to those with a bound pod, then by a hash of warmup and node name, so that nodes
// with similar names, often of one rack, do not fetch together.
FetchSlots AssignFetchSlots(const PlanContext& context, const std::vector<size_t>& to_fetch);

}  // namespace cachewarm::plan
