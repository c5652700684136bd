// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lib/api/kubernetes.h"
#include "lib/base/clock.h"
#include "operator/plan/nodes/readiness.h"
#include "operator/plan/values.h"

// Decides about the startup taints of one node.
namespace cachewarm::plan {

// Longest time that a cachewarm startup taint keeps pods off a node, counted from the time at which
// the node became Ready.
inline constexpr Duration kWarmingMax = std::chrono::seconds(60);

struct NodeObservation {
  WallTime now{};
  NodeView view;
  std::vector<ReadinessState> readiness;  // one for each warmup of the cluster
};

struct NodeDecision {
  // Reason to remove the startup taints, one of api::reason::kNode…; empty: keep them.
  std::string_view remove_taints_for;
  std::optional<Duration> requeue_after;  // nullopt: wait for a change
};

// Returns when the startup taints of a Ready node are removed, warm or not. The node's clock may be
// wrong: if the Ready transition is before the node's creation or after `now`, the creation time is
// used instead.
WallTime WarmingDeadline(const api::Node& node, WallTime now);

// Returns the decision for one node. Pure. Fails open: a Ready node loses its startup taints at the
// deadline.
NodeDecision EvaluateNode(const NodeObservation& observation);

}  // namespace cachewarm::plan
