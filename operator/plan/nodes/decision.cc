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

const NodeReadiness* Find(const std::vector<NodeReadiness>& readiness, ReadinessState wanted) {
  const auto found = std::find_if(readiness.begin(), readiness.end(),
                                  [&](const NodeReadiness& each) { return each.state == wanted; });
  return found == readiness.end() ? nullptr : &*found;
}

// Returns the node's condition. The condition is Unknown until an agent has reported the node's
// facts, because labels and devices may still be added until then.
api::NodeCondition EvaluateCondition(const NodeObservation& observation) {
  if (observation.readiness.empty()) {
    return {.status = "True",
            .reason = std::string(reason::kNodeNoMatchingWarmup),
            .message = "there are no CacheWarmups"};
  }
  if (!IsLive(observation.view, observation.now) || !HasFacts(observation.view)) {
    return {.status = "Unknown",
            .reason = std::string(reason::kNodeAgentNotReady),
            .message = "no cachewarm agent is ready on this node"};
  }
  if (const NodeReadiness* warming = Find(observation.readiness, ReadinessState::kWarming)) {
    return {.status = "False",
            .reason = std::string(reason::kNodeWarming),
            .message = warming->message};
  }
  if (const NodeReadiness* failed = Find(observation.readiness, ReadinessState::kFailed)) {
    return {.status = "False",
            .reason = std::string(reason::kNodeBundleFailed),
            .message = failed->message};
  }
  if (Find(observation.readiness, ReadinessState::kWarm) == nullptr) {
    return {.status = "True",
            .reason = std::string(reason::kNodeNoMatchingWarmup),
            .message = "no pod of any CacheWarmup can run on this node"};
  }
  return {.status = "True",
          .reason = std::string(reason::kNodeWarm),
          .message = "directories and bundles of all matching CacheWarmups are ready"};
}

std::string_view RemovalReason(const api::NodeCondition& condition) {
  for (const std::string_view each :
       {reason::kNodeWarm, reason::kNodeNoMatchingWarmup, reason::kNodeBundleFailed}) {
    if (condition.reason == each) {
      return each;
    }
  }
  return {};
}

void RequeueWithin(NodeDecision& decision, Duration wait) {
  decision.requeue_after = decision.requeue_after ? std::min(*decision.requeue_after, wait) : wait;
}

void EvaluateTaints(const NodeObservation& observation, const api::NodeCondition& condition,
                    NodeDecision& out) {
  const api::Node& node = *observation.view.node;
  out.remove_taints_for = RemovalReason(condition);
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
  const api::Node& node = *observation.view.node;
  const bool is_warming = HasStartupTaint(node);
  if (!is_warming && !observation.reports_condition) {
    return out;
  }
  const api::NodeCondition condition = EvaluateCondition(observation);
  if (is_warming) {
    EvaluateTaints(observation, condition, out);
  }
  const bool concerns = condition.reason != reason::kNodeNoMatchingWarmup &&
                        (Find(observation.readiness, ReadinessState::kWarming) != nullptr ||
                         Find(observation.readiness, ReadinessState::kFailed) != nullptr ||
                         Find(observation.readiness, ReadinessState::kWarm) != nullptr);
  if (observation.reports_condition && (concerns || is_warming || node.warm.has_value())) {
    out.condition = condition;
  }
  if (IsLive(observation.view, observation.now) && !observation.view.agent_ready) {
    RequeueWithin(out, kAgentRecheck);
  }
  return out;
}

}  // namespace cachewarm::plan
