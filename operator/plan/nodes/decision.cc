// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/decision.h"

#include <algorithm>

#include "lib/api/reasons.h"
#include "operator/plan/distribution/fetch_slots.h"
#include "operator/plan/scheduling/pod_shape.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// Recheck interval while the agent's pod is not Ready and the agent counts as live only because of
// its last report.
constexpr Duration kAgentRecheck = std::chrono::seconds(30);

bool HasFacts(const NodeView& view) {
  return view.cache != nullptr && !view.cache->status.node.cpu_class.empty();
}

bool HasState(const std::vector<ReadinessState>& readiness, ReadinessState wanted) {
  return std::find(readiness.begin(), readiness.end(), wanted) != readiness.end();
}

// Returns the reason to remove the startup taints before their deadline; empty: keep them. Keeps
// them until an agent has reported the node's facts, because labels and devices may still be added
// until then.
std::string_view RemovalReason(const NodeObservation& observation) {
  if (observation.readiness.empty()) {
    return reason::kNodeNoMatchingWarmup;
  }
  if (!IsLive(observation.view, observation.now) || !HasFacts(observation.view) ||
      HasState(observation.readiness, ReadinessState::kWarming)) {
    return {};
  }
  if (HasState(observation.readiness, ReadinessState::kFailed)) {
    return reason::kNodeBundleFailed;
  }
  return HasState(observation.readiness, ReadinessState::kWarm) ? reason::kNodeWarm
                                                                : reason::kNodeNoMatchingWarmup;
}

void RequeueWithin(NodeDecision& decision, Duration wait) {
  decision.requeue_after = decision.requeue_after ? std::min(*decision.requeue_after, wait) : wait;
}

void EvaluateTaints(const NodeObservation& observation, NodeDecision& out) {
  const api::Node& node = *observation.view.node;
  out.remove_taints_for = RemovalReason(observation);
  if (!out.remove_taints_for.empty() || !node.ready) {
    return;  // no pod can use a node that is not Ready; kWarmingMax counts from Ready
  }
  const WallTime deadline = WarmingDeadline(node, observation.now);
  if (observation.now >= deadline) {
    out.remove_taints_for = reason::kNodeDeadlineExceeded;
  } else {
    RequeueWithin(out, deadline - observation.now);
  }
}

}  // namespace

WallTime WarmingDeadline(const api::Node& node, WallTime now) {
  const bool plausible = node.ready_since >= node.meta.created && node.ready_since <= now;
  return (plausible ? node.ready_since : node.meta.created) + kWarmingMax;
}

NodeDecision EvaluateNode(const NodeObservation& observation) {
  NodeDecision out;
  if (!HasStartupTaint(*observation.view.node)) {
    return out;
  }
  EvaluateTaints(observation, out);
  if (IsLive(observation.view, observation.now) && !observation.view.agent_ready) {
    RequeueWithin(out, kAgentRecheck);
  }
  return out;
}

}  // namespace cachewarm::plan
