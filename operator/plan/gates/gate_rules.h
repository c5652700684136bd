// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "operator/plan/decisions.h"
#include "operator/plan/gates/candidate_nodes.h"
#include "operator/plan/gates/hold_deadline.h"
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
  kHoldForNode  // until waiting for one warming node stops being worthwhile
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

struct ReleaseDecision {
  std::string_view reason;
  std::vector<size_t> preferred;  // indices into PlanContext::nodes
};

// The decision about one held pod: if `release` is set, the pod is released; otherwise it is held
// until the next plan.
struct GateDecision {
  size_t pod = 0;
  WallTime deadline{};
  std::optional<ReleaseDecision> release;
  bool excludes_unusable = false;  // the release excludes nodes without a usable directory
};

// The inputs of the decisions about the held pods of one warmup. Both arguments must outlive it.
struct GateContext {
  GateContext(const DistributedContext& distributed, GateDecisions& decisions);

  const DistributedContext& context;
  GateDecisions& out;
  const WaitEstimator estimator;
  const HoldDeadlines deadlines;
  CandidateNodesCache candidates;
};

// Applies the first rule to the pod with this index in PlanContext::pods. Reserves capacity for it
// in `gate.out`, and plans again when its hold may end before the deadline.
GateDecision DecideGate(GateContext& gate, size_t index);

}  // namespace cachewarm::plan
