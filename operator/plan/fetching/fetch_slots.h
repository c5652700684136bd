// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/plan/plan_context.h"

// Whose turn it is to fetch: a store that is asked by every node of a cluster at once serves none
// of them in time. At most Settings::fetch_nodes_max nodes have something to fetch, all warmups
// together; nodes that pods wait for come first, and a quarter of the turns is theirs alone. All of
// it is read from NodeCaches, so that a new leader goes on where the last one stopped. Two warmups
// that are planned at the same moment do not see each other's turns: the cap is that much soft.
namespace cachewarm::plan {

struct FetchSlots {
  std::vector<int> needs;    // api::kNeed…, by node in PlanContext::nodes
  std::set<size_t> granted;  // of those that ask
  // The others whose agent could begin, and how many whole turns come before the node's own.
  std::map<size_t, int> waiting;
  size_t fetching = 0;  // nodes that fetch already, in the whole cluster
};

// An agent is at work there: its pod is Ready, or it has reported within the last half minute (the
// readiness probe of an agent that has just started comes later than its first report).
bool IsLive(const NodeView& view, WallTime now);

// The node was told to fetch bundles of `wanted` that its agent has neither activated nor failed
// on for good (a failure of the store is none), and has not had two minutes and a second per MiB
// for it.
bool IsFetching(const NodeView& view, const api::WantedWarmup& wanted, WallTime now);

// How soon the workload's pods need each node: as many nodes as there are unbound pods, those that
// are warm already or fetch first, and every node where a bound pod has not started.
std::vector<int> NeedsOf(const PlanContext& context);

// Shares the free turns out among `asking`, nodes of PlanContext::nodes that lack a wanted bundle:
// by need, then in an order that depends on the names of node and warmup alone, so that neighbours
// do not go together.
FetchSlots AssignFetchSlots(const PlanContext& context, const std::vector<size_t>& to_fetch);

}  // namespace cachewarm::plan
