// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "operator/model/pod_groups.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/candidate_nodes.h"
#include "operator/plan/gates/gate_rules.h"
#include "operator/plan/gates/hold_deadline.h"
#include "operator/plan/gates/wait_estimator.h"
#include "operator/render/affinity.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr size_t kExcludedHostnamesMax = 200'000;  // limit for all releases of one plan together

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

struct GateContext {
  const DistributedContext& context;
  GateDecisions& out;
  const WaitEstimator& estimator;
  HoldDeadlines deadlines;
  CandidateNodesCache candidates;
};

double HeldSeconds(const Context& context, const api::Pod& pod) {
  const auto held = std::max(context.in.now - pod.meta.created, Duration{0});
  return std::chrono::duration<double>(held).count();
}

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

// Returns how many hostnames each of `pods` releases may exclude. This bounds the number of
// excluded hostnames in one plan.
size_t ExcludedMax(size_t pods) {
  return std::clamp(kExcludedHostnamesMax / std::max<size_t>(pods, 1), render::kPreferredMax,
                    render::kRequiredMax);
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

GateDecision EvaluateGate(GateContext& gate, size_t index) {
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

// Holds all pods of a group or none: if one pod of the group is not held, the others are released,
// even if that pod belongs to another warmup.
void KeepGroupsTogether(const Context& context, std::vector<GateDecision>& decisions) {
  std::set<std::string> free = context.in.groups_free_elsewhere;
  for (const PodView& pod : context.pods) {
    if (!pod.held && !pod.finished && !pod.pod->meta.deleting && !pod.of_job) {
      free.insert(model::GroupOf(*pod.pod));
    }
  }
  for (const GateDecision& decision : decisions) {
    if (decision.release) {
      free.insert(model::GroupOf(*context.pods[decision.pod].pod));
    }
  }
  free.erase("");
  for (GateDecision& decision : decisions) {
    if (!decision.release && free.contains(model::GroupOf(*context.pods[decision.pod].pod))) {
      decision.release = ReleaseDecision{reason::kReleasedWithGroup, {}};
    }
  }
}

void Release(GateContext& gate, const GateDecision& decision, size_t excluded_max) {
  const DistributedContext& context = gate.context;
  const PodView& pod = context.pods[decision.pod];
  GateRelease release{
      .pod = pod.pod,
      .reason = std::string(decision.release->reason),
      .held_seconds = HeldSeconds(context, *pod.pod),
      .preferred = Hostnames(context, decision.release->preferred, render::kPreferredMax)};
  if (decision.excludes_unusable) {
    release.excluded = Hostnames(context, gate.candidates.For(pod).unusable, excluded_max);
  }
  release.event = MakePodEvent(*pod.pod, release.reason,
                               fmt::format("pod released after {:.0f} s", release.held_seconds));
  gate.out.releases.push_back(std::move(release));
}

void AnnotateHeld(const Context& context, const PodView& pod, WallTime deadline, Effects& effects) {
  const api::ObjectMeta& meta = pod.pod->meta;
  effects.RequeueAt(deadline);
  if (meta.annotations.contains(api::kHeldUntilAnnotation)) {
    return;
  }
  if (context.in.now < meta.created + kUnreportedHoldMax) {
    effects.RequeueAt(meta.created + kUnreportedHoldMax);
    return;
  }
  effects.annotations.push_back({.ns = meta.ns,
                                 .pod = meta.name,
                                 .uid = meta.uid,
                                 .key = std::string(api::kHeldUntilAnnotation),
                                 .value = FormatTime(deadline),
                                 .held = pod.pod});
  effects.events.push_back(MakePodEvent(
      *pod.pod, reason::kPodHeld,
      fmt::format("pod held until a node is warm, no later than {}", FormatTime(deadline))));
}

// Puts builders first, so that the scheduler binds them before other pods take their capacity.
void PutBuildersFirst(std::vector<GateRelease>& releases) {
  std::stable_partition(releases.begin(), releases.end(), [](const GateRelease& release) {
    return release.reason == reason::kReleasedForBuild;
  });
}

// Reserves capacity for pods that were released earlier and are still unbound. Treats all of them
// as pods of the template, so that a node without capacity for one pod can be skipped for the rest.
void ReserveForUnbound(const Context& context, Reserved& reserved) {
  const PodShape& shape = context.pod_template.shape;
  size_t node = 0;
  const auto is_full = [&] {
    return !context.nodes[node].possible || !Fits(context, reserved, node, shape);
  };
  for (const PodView& pod : context.pods) {
    if (!pod.injected || pod.held || pod.finished || !pod.pod->node.empty() ||
        model::HasOtherGate(*pod.pod)) {
      continue;
    }
    while (node < context.nodes.size() && is_full()) {
      ++node;
    }
    if (node == context.nodes.size()) {
      return;
    }
    Reserve(reserved, node, shape);
  }
}

}  // namespace

GateDecisions DecideGates(const DistributedContext& context) {
  GateDecisions out{.reserved = context.builds.reserved};
  ReserveForUnbound(context, out.reserved);
  const WaitEstimator estimator(EstimatorInputs(context));
  GateContext gate{.context = context,
                   .out = out,
                   .estimator = estimator,
                   .deadlines = HoldDeadlines(context.in.pods,
                                              MaxHold(context.in.warmup, context.in.constraints)),
                   .candidates = CandidateNodesCache(context, estimator, out.reserved)};
  std::vector<GateDecision> decisions;
  for (size_t i = 0; i < context.pods.size(); ++i) {
    const PodView& pod = context.pods[i];
    if (pod.held && !pod.of_other_warmup && !pod.pod->meta.deleting) {
      decisions.push_back(EvaluateGate(gate, i));
    }
  }
  KeepGroupsTogether(context, decisions);
  const size_t excluded_max = ExcludedMax(decisions.size());
  for (const GateDecision& decision : decisions) {
    if (decision.release) {
      Release(gate, decision, excluded_max);
    } else {
      AnnotateHeld(context, context.pods[decision.pod], decision.deadline, out.effects);
    }
  }
  PutBuildersFirst(out.releases);
  return out;
}

}  // namespace cachewarm::plan
