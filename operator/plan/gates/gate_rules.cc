// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/gates/gate_rules.h"

#include <algorithm>
#include <iterator>

#include "lib/api/reasons.h"
#include "operator/model/pod_groups.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// Mode Hold: pods are released as soon as there are at least this many warm nodes for each node
// that is warming.
constexpr size_t kWarmPerWarming = 10;

bool IsHoldingDisabled(const HeldPod& held) {
  const DistributedContext& context = held.context;
  return context.deleting() || context.paused() || !context.acceptance.inject ||
         context.in.warmup.spec.gate.mode == api::GateMode::kNever;
}

bool AwaitsEnoughWarmNodes(const HeldPod& held) {
  const CandidateNodes& nodes = held.candidates;
  return held.context.in.warmup.spec.gate.mode == api::GateMode::kHold &&
         (nodes.warming.size() * kWarmPerWarming > nodes.warm.size() ||
          (nodes.warm.empty() && !nodes.failing.empty()));
}

// Returns the first warming node for which it is worthwhile to hold the pod; nullptr if there is
// none. `cost` is set to the cost of holding the pod for that node.
const WarmingNode* FindWorthwhile(const HeldPod& held, HoldCost& cost) {
  const DistributedContext& context = held.context;
  for (const WarmingNode& warming : held.candidates.warming) {
    const LiveKey* key = FindKey(context, context.nodes[warming.node].target, held.pod.factors);
    if (key == nullptr || !warming.forecast) {
      continue;
    }
    cost = {.created = held.pod.pod->meta.created,
            .deadline = held.deadline,
            .gain = held.estimator.GainOf(*key)};
    if (IsWorthWaiting(cost, *warming.forecast, context.in.now)) {
      return &warming;
    }
  }
  return nullptr;
}

bool IsWaitWorthwhile(const HeldPod& held) {
  HoldCost cost;
  return held.context.in.warmup.spec.gate.mode == api::GateMode::kAuto &&
         held.candidates.warm.empty() && FindWorthwhile(held, cost) != nullptr;
}

constexpr GateRule kGateRules[] = {
    {.when =
         "the CacheWarmup is paused or being deleted, its injection is off, or gate.mode is Never",
     .applies = IsHoldingDisabled,
     .reason = reason::kReleasedHoldingDisabled,
     .preference = ReleasePreference::kWarmNodes},
    {.when = "the workload is never held",
     .applies = [](const HeldPod& held) { return held.context.hold.never_held != nullptr; }},
    {.when = "the pod has another scheduling gate or belongs to Kueue",
     .applies =
         [](const HeldPod& held) {
           return model::HasOtherGate(*held.pod.pod) || model::IsOfKueue(*held.pod.pod);
         },
     .reason = reason::kReleasedOtherGate},
    {.when = "the pod belongs to a gang of an unsupported kind",
     .applies = [](const HeldPod& held) { return model::IsOfUnknownGang(*held.pod.pod); },
     .reason = reason::kReleasedUnknownGang,
     .preference = ReleasePreference::kWarmNodes},
    {.when = "fewer pods are available than status.minAvailable",
     .applies = [](const HeldPod& held) { return IsBelowMinAvailable(held.context); },
     .reason = reason::kReleasedBelowMinAvailable,
     .preference = ReleasePreference::kWarmNodes},
    {.when = "the pod is elected to build a bundle",
     .applies = [](const HeldPod& held) { return held.builder != nullptr; },
     .reason = reason::kReleasedForBuild,
     .preference = ReleasePreference::kBuilderNodes},
    {.when = "the deadline of the pod has passed",
     .applies = [](const HeldPod& held) { return held.context.in.now >= held.deadline; },
     .reason = reason::kReleasedAtDeadline,
     .preference = ReleasePreference::kWarmNodes},
    {.when = "gate.mode is Hold, and either fewer than ten nodes are warm for each warming one, or "
             "no node is warm and a failed fetch will be retried",
     .applies = AwaitsEnoughWarmNodes,
     .action = GateAction::kHold},
    {.when = "gate.mode is Auto, no node is warm, and waiting for a warming node takes less time "
             "than the cache saves",
     .applies = IsWaitWorthwhile,
     .action = GateAction::kHoldForNode},
    {.when = "a node with capacity is warm",
     .applies = [](const HeldPod& held) { return !held.candidates.warm.empty(); },
     .reason = reason::kReleasedWarm,
     .preference = ReleasePreference::kWarmNodes},
    {.when = "no node has capacity for the pod",
     .applies = [](const HeldPod& held) { return held.candidates.none(); },
     .reason = reason::kReleasedNoCapacity},
    {.when = "in every other case",
     .applies = [](const HeldPod& /*held*/) { return true; },
     .reason = reason::kReleasedNotWorthWaiting},
};

// Returns the warm nodes that the released pod should prefer; none if every candidate is warm,
// because no affinity is then needed.
std::vector<size_t> PreferWarm(const CandidateNodes& candidates) {
  const bool all_warm =
      candidates.warming.empty() && candidates.failing.empty() && candidates.cold.empty();
  return all_warm ? std::vector<size_t>() : candidates.warm;
}

// True if the release excludes the nodes without a usable directory. False if no other node exists,
// or if only excluded nodes have capacity now: the rollout could otherwise wait forever beside an
// idle node.
bool ExcludesUnusable(const Context& context, const Reserved& reserved,
                      const CandidateNodes& candidates, const PodShape& shape) {
  const bool elsewhere =
      std::any_of(context.nodes.begin(), context.nodes.end(),
                  [](const auto& node) { return node.possible && node.ready && node.prepared; });
  const auto& unusable = candidates.unusable;
  return elsewhere && !unusable.empty() &&
         (!candidates.none() || std::none_of(unusable.begin(), unusable.end(), [&](size_t node) {
           return Fits(context, reserved, node, shape);
         }));
}

// Reserves capacity for a pod that stays held, so that no later pod is held for the same capacity.
// A later pod that then fits nowhere is released, because an autoscaler adds nodes only for pods
// without gates.
void ReserveForHeldPod(Reserved& reserved, const CandidateNodes& candidates,
                       const PodShape& shape) {
  if (!candidates.warming.empty()) {
    Reserve(reserved, candidates.warming.front().node, shape);
  } else if (!candidates.failing.empty()) {
    Reserve(reserved, candidates.failing.front(), shape);
  } else if (!candidates.warm.empty()) {
    Reserve(reserved, candidates.warm.front(), shape);
  }
}

const BuilderCandidate* FindBuilderCandidate(const PlanContext& context, size_t pod) {
  for (const BuilderCandidate& candidate : context.builds.candidates) {
    if (candidate.pod == pod) {
      return &candidate;
    }
  }
  return nullptr;
}

ReleaseDecision MakeRelease(const HeldPod& held, std::string_view why,
                            ReleasePreference preference) {
  switch (preference) {
    case ReleasePreference::kWarmNodes:
      return {why, PreferWarm(held.candidates)};
    case ReleasePreference::kBuilderNodes:
      return {why, held.context.targets[held.builder->target].nodes};
    case ReleasePreference::kNone:
      break;
  }
  return {why, {}};
}

// Reserves capacity for a pod that waits for one node, and plans again when waiting stops being
// worthwhile.
void HoldForNode(const HeldPod& held, GateDecisions& out) {
  HoldCost cost;
  const WarmingNode& warming = *FindWorthwhile(held, cost);
  const WallTime now = held.context.in.now;
  out.effects.RequeueAt(WorthWaitingUntil(cost, *warming.forecast, now));
  Reserve(out.reserved, warming.node, *held.pod.shape);
}

// Returns nullopt if the pod stays held.
std::optional<ReleaseDecision> DecideRelease(const HeldPod& held, GateDecisions& out) {
  const GateRule& rule = FindGateRule(held);
  switch (rule.action) {
    case GateAction::kHold:
      ReserveForHeldPod(out.reserved, held.candidates, *held.pod.shape);
      return std::nullopt;
    case GateAction::kHoldForNode:
      HoldForNode(held, out);
      return std::nullopt;
    case GateAction::kRelease:
      break;
  }
  const WorkloadRule* never = rule.reason.empty() ? held.context.hold.never_held : nullptr;
  return never != nullptr ? MakeRelease(held, never->reason, never->preference)
                          : MakeRelease(held, rule.reason, rule.preference);
}

}  // namespace

std::span<const GateRule> GateRules() {
  return kGateRules;
}

const GateRule& FindGateRule(const HeldPod& held) {
  const auto* const rule = std::find_if(std::begin(kGateRules), std::prev(std::end(kGateRules)),
                                        [&](const GateRule& each) { return each.applies(held); });
  return *rule;
}

GateContext::GateContext(const DistributedContext& distributed, GateDecisions& decisions)
    : context(distributed),
      out(decisions),
      estimator(EstimatorInputs(distributed)),
      deadlines(context.in.pods, MaxHold(context.in.warmup, context.in.constraints)),
      candidates(context, estimator, out.reserved) {}

GateDecision DecideGate(GateContext& gate, size_t index) {
  const DistributedContext& context = gate.context;
  const PodView& pod = context.pods[index];
  const CandidateNodes& before = gate.candidates.For(pod);
  const HeldPod held{.context = context,
                     .estimator = gate.estimator,
                     .candidates = before,
                     .pod = pod,
                     .builder = FindBuilderCandidate(context, index),
                     .deadline = gate.deadlines.DeadlineOf(*pod.pod)};
  GateDecision out{
      .pod = index, .deadline = held.deadline, .release = DecideRelease(held, gate.out)};
  // The pod may have reserved the last capacity of a candidate.
  const CandidateNodes& candidates = gate.candidates.For(pod);
  const bool has_capacity = held.builder != nullptr && held.builder->has_capacity;
  out.excludes_unusable =
      has_capacity || ExcludesUnusable(context, gate.out.reserved, candidates, *pod.shape);
  if (out.release && out.release->reason == reason::kReleasedWarm) {
    Reserve(gate.out.reserved, candidates.warm.front(), *pod.shape);
  }
  return out;
}

}  // namespace cachewarm::plan
