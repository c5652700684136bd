// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/verdict.h"

#include <algorithm>

#include "lib/api/reasons.h"
#include "operator/plan/fetching/turns.h"
#include "operator/plan/scheduling/shape.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// How soon a liveness that rests on the agent's last report alone is looked at again.
constexpr Duration kLookAtAgent = std::chrono::seconds(30);

bool HasFacts(const NodeView& view) {
  return view.cache != nullptr && !view.cache->status.node.cpu_class.empty();
}

const NodeClaim* Find(const std::vector<NodeClaim>& claims, Claim wanted) {
  const auto found = std::find_if(claims.begin(), claims.end(),
                                  [&](const NodeClaim& each) { return each.claim == wanted; });
  return found == claims.end() ? nullptr : &*found;
}

// Without an agent's word about the node, labels and devices that pods select by may still come.
api::NodeCondition StateOf(const NodeLook& look) {
  if (look.claims.empty()) {
    return {.status = "True",
            .reason = std::string(reason::kNodeNothingFits),
            .message = "there is no CacheWarmup"};
  }
  if (!IsLive(look.view, look.now) || !HasFacts(look.view)) {
    return {.status = "Unknown",
            .reason = std::string(reason::kNodeAgentNotReady),
            .message = "no agent of cachewarm is ready on this node"};
  }
  if (const NodeClaim* waits = Find(look.claims, Claim::kWaits)) {
    return {
        .status = "False", .reason = std::string(reason::kNodeWarming), .message = waits->message};
  }
  if (const NodeClaim* failed = Find(look.claims, Claim::kFailed)) {
    return {.status = "False",
            .reason = std::string(reason::kNodeBundleFailed),
            .message = failed->message};
  }
  if (Find(look.claims, Claim::kWarm) == nullptr) {
    return {.status = "True",
            .reason = std::string(reason::kNodeNothingFits),
            .message = "no pod of a CacheWarmup can run here"};
  }
  return {.status = "True",
          .reason = std::string(reason::kNodeWarm),
          .message = "directories and bundles of all warmups that fit are here"};
}

std::string_view WhyFree(const api::NodeCondition& state) {
  for (const std::string_view each :
       {reason::kNodeWarm, reason::kNodeNothingFits, reason::kNodeBundleFailed}) {
    if (state.reason == each) {
      return each;
    }
  }
  return {};
}

void Sooner(NodeVerdict& verdict, Duration wait) {
  verdict.look_again = verdict.look_again ? std::min(*verdict.look_again, wait) : wait;
}

void JudgeTaints(const NodeLook& look, const api::NodeCondition& state, NodeVerdict& out) {
  const api::Node& node = *look.view.node;
  out.remove_taints_for = WhyFree(state);
  if (!out.remove_taints_for.empty() || !node.ready) {
    return;  // nobody can use a node that is not Ready; its minute begins when it is
  }
  const WallTime deadline = WarmingDeadline(node, look.now);
  if (look.now >= deadline) {
    out.remove_taints_for = reason::kNodeDeadline;
  } else {
    Sooner(out, deadline - look.now);
  }
}

}  // namespace

WallTime WarmingDeadline(const api::Node& node, WallTime now) {
  const bool plausible = node.ready_since >= node.meta.created && node.ready_since <= now;
  return (plausible ? node.ready_since : node.meta.created) + kWarmingMost;
}

NodeVerdict JudgeNode(const NodeLook& look) {
  NodeVerdict out;
  const api::Node& node = *look.view.node;
  const bool is_warming = IsWarming(node);
  if (!is_warming && !look.wants_condition) {
    return out;
  }
  const api::NodeCondition state = StateOf(look);
  if (is_warming) {
    JudgeTaints(look, state, out);
  }
  const bool concerns =
      state.reason != reason::kNodeNothingFits &&
      (Find(look.claims, Claim::kWaits) != nullptr ||
       Find(look.claims, Claim::kFailed) != nullptr || Find(look.claims, Claim::kWarm) != nullptr);
  if (look.wants_condition && (concerns || is_warming || node.warm.has_value())) {
    out.condition = state;
  }
  if (IsLive(look.view, look.now) && !look.view.agent_ready) {
    Sooner(out, kLookAtAgent);
  }
  return out;
}

}  // namespace cachewarm::plan
