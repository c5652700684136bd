// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "operator/plan/decisions.h"
#include "operator/plan/gates/candidate_nodes.h"
#include "operator/plan/gates/hold_deadline.h"
#include "operator/plan/gates/hold_policy.h"
#include "operator/plan/gates/wait_estimator.h"

namespace cachewarm::plan {

namespace {

// True if a new pod would be held until a node is warm.
bool WouldWait(const DistributedContext& context, const WaitEstimator& estimator,
               const CandidateNodes& candidates, Effects& effects) {
  const WallTime now = context.in.now;
  const Duration longest = MaxHold(context.in.warmup, context.in.constraints);
  bool waits = false;
  for (const WarmingNode& warming : candidates.warming) {
    const LiveKey* key =
        FindKey(context, context.nodes[warming.node].target, context.pod_template.factors);
    if (key == nullptr || !warming.forecast) {
      continue;
    }
    const Forecast& forecast = *warming.forecast;
    const Duration gain = std::min(estimator.GainOf(*key), longest);
    waits = waits || IsWorthWaiting({.created = now, .deadline = now + longest, .gain = gain},
                                    forecast, now);
    // Plan again at these times, because the result then changes without any change in the cluster.
    for (const WallTime change : {forecast.end - gain, forecast.end + gain}) {
      if (!forecast.is_stalled && change > now) {
        effects.RequeueAt(change);
      }
    }
  }
  return waits;
}

// True if a held pod could benefit from waiting, or from the affinity that its release adds.
bool ShouldAddGate(const DistributedContext& context, const Reserved& reserved, Effects& effects) {
  if (!context.may_hold() || context.paused()) {
    return false;
  }
  if (context.releases_rejected()) {
    effects.RequeueAt(context.in.release_refusal.time + kReleaseRefusalLasts);
    return false;
  }
  const WaitEstimator estimator(EstimatorInputs(context));
  const CandidateNodes candidates = FindCandidateNodes(
      context, estimator, reserved, context.pod_template.shape, context.pod_template.factors);
  if (!candidates.unusable.empty()) {
    return true;  // the release of a held pod excludes those nodes
  }
  if (candidates.none() || IsBelowMinAvailable(context)) {
    return false;
  }
  if (context.in.warmup.spec.gate.mode == api::GateMode::kHold) {
    return std::any_of(context.keys.begin(), context.keys.end(), [&](const LiveKey& key) {
      return key.current &&
             !IsExhausted(context, context.bundles, key, FindBuilder(context.builders, key.key));
    });
  }
  const size_t not_warm =
      candidates.warming.size() + candidates.failing.size() + candidates.cold.size();
  return candidates.warm.empty() ? WouldWait(context, estimator, candidates, effects)
                                 : !IsMinority(not_warm, candidates.warm.size() + not_warm);
}

}  // namespace

GateInjection DecideGateInjection(const DistributedContext& context, const Reserved& reserved) {
  GateInjection out;
  if (!context.deleting() && context.acceptance.injection) {
    out.add_gate = ShouldAddGate(context, reserved, out.effects);
  }
  return out;
}

}  // namespace cachewarm::plan
