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

}  // namespace

std::span<const GateRule> GateRules() {
  return kGateRules;
}

const GateRule& FindGateRule(const HeldPod& held) {
  const auto* const rule = std::find_if(std::begin(kGateRules), std::prev(std::end(kGateRules)),
                                        [&](const GateRule& each) { return each.applies(held); });
  return *rule;
}

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

}  // namespace cachewarm::plan
