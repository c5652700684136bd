// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "operator/plan/decisions.h"
#include "operator/plan/gates/candidate_nodes.h"
#include "operator/plan/gates/hold_policy.h"
#include "operator/plan/gates/wait_estimator.h"

// The decision table of gates: the rules that release or hold one pod, in the order in which they
// are judged. docs/reference/gates.md is printed from it. Pure.
namespace cachewarm::plan {

// The facts about one held pod. Everything must outlive it.
struct HeldPod {
  const DistributedContext& context;
  const WaitEstimator& estimator;
  const CandidateNodes& candidates;
  const PodView& pod;
  const BuilderCandidate* builder = nullptr;  // set if the pod is released to become a builder
  WallTime deadline{};
};

enum class GateAction {
  kRelease,
  kHold,        // until a node is warm; reserves capacity on the node that will be warm first
  kHoldForNode  // until waiting for the node of FindWorthwhile() stops being worthwhile
};

struct GateRule {
  std::string_view when;  // for docs/reference/gates.md
  bool (*applies)(const HeldPod& held);
  GateAction action = GateAction::kRelease;
  // api::reason::kReleased…; empty if the pod stays held, or if the reason comes from the
  // WorkloadRule of the workload (hold_policy.h)
  std::string_view reason = {};
  ReleasePreference preference = ReleasePreference::kNone;
};

// The last rule applies to every pod.
std::span<const GateRule> GateRules();

// Returns the first rule that applies.
const GateRule& FindGateRule(const HeldPod& held);

// Returns the first warming node for which it is worthwhile to hold the pod; nullptr if there is
// none. `cost` is set to the cost of holding the pod for that node.
const WarmingNode* FindWorthwhile(const HeldPod& held, HoldCost& cost);

}  // namespace cachewarm::plan
