// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/api/kubernetes.h"
#include "lib/base/clock.h"
#include "operator/plan/nodes/readiness.h"
#include "operator/plan/snapshot.h"

// What is to become of one node's startup taint and of its condition cachewarm.io/Warm.
namespace cachewarm::plan {

// How long a startup taint of ours keeps pods off a node, counted from when it was Ready.
inline constexpr Duration kWarmingMax = std::chrono::seconds(60);

struct NodeObservation {
  WallTime now{};
  NodeView view;
  std::vector<NodeReadiness> readiness;  // one of each warmup of the cluster
  bool reports_condition = false;        // the setting nodeCondition
};

struct NodeDecision {
  std::string_view remove_taints_for;  // api::reason::kNode…; empty: they stay, or there are none
  // What the condition should say; nullopt: the node should have none of ours.
  std::optional<api::NodeCondition> condition;
  std::optional<Duration> requeue_after;  // nothing: only a change can matter
};

// When the startup taints are taken from a node that is Ready, warm or not. Its clock is not to be
// trusted: a time before its creation or after `now` counts as its creation.
WallTime WarmingDeadline(const api::Node& node, WallTime now);

// Pure and total. Fails open: a node that is Ready is free at its deadline whatever is missing.
NodeDecision EvaluateNode(const NodeObservation& observation);

}  // namespace cachewarm::plan
