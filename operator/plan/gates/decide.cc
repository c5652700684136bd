// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/candidate_nodes.h"
#include "operator/plan/gates/groups.h"
#include "operator/plan/gates/hold_deadline.h"
#include "operator/plan/gates/never_held.h"
#include "operator/plan/gates/wait_estimator.h"
#include "operator/render/affinity.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// Mode Hold: pods are released as soon as there are at least this many warm nodes for each node
// that is warming.
constexpr size_t kWarmPerWarming = 10;
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
  PlanContext& context;
  WaitEstimator estimator;
  HoldDeadlines deadlines;
  CandidateNodesCache candidates;
  bool release_all = false;
};

double HeldSeconds(const PlanContext& context, const api::Pod& pod) {
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
bool ExcludesUnusable(const PlanContext& context, const CandidateNodes& candidates,
                      const PodShape& shape) {
  const bool elsewhere =
      std::any_of(context.nodes.begin(), context.nodes.end(),
                  [](const auto& node) { return node.possible && node.ready && node.prepared; });
  const auto& unusable = candidates.unusable;
  return elsewhere && !unusable.empty() &&
         (!candidates.none() || std::none_of(unusable.begin(), unusable.end(), [&](size_t node) {
           return Fits(context, node, shape);
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
void ReserveForHeldPod(PlanContext& context, const CandidateNodes& candidates,
                       const PodShape& shape) {
  if (!candidates.warming.empty()) {
    Reserve(context, candidates.warming.front().node, shape);
  } else if (!candidates.failing.empty()) {
    Reserve(context, candidates.failing.front(), shape);
  } else if (!candidates.warm.empty()) {
    Reserve(context, candidates.warm.front(), shape);
  }
}

ReleaseDecision StopWaiting(const CandidateNodes& candidates) {
  if (!candidates.warm.empty()) {
    return {reason::kReleasedWarm, PreferWarm(candidates)};
  }
  return {candidates.none() ? reason::kReleasedNoCapacity : reason::kReleasedNotWorthWaiting, {}};
}

// Mode Hold: the pod waits until enough nodes are warm. Returns nullopt while it waits.
std::optional<ReleaseDecision> DecideInHoldMode(GateContext& gate, const PodView& pod,
                                                const CandidateNodes& candidates) {
  const bool waits = candidates.warming.size() * kWarmPerWarming > candidates.warm.size() ||
                     (candidates.warm.empty() && !candidates.failing.empty());
  if (!waits) {
    return StopWaiting(candidates);
  }
  ReserveForHeldPod(gate.context, candidates, *pod.shape);
  return std::nullopt;
}

// Mode Auto: the pod waits while waiting for a warm node takes less time than the cache saves.
// Returns nullopt while it waits.
std::optional<ReleaseDecision> DecideInAutoMode(GateContext& gate, const PodView& pod,
                                                const CandidateNodes& candidates,
                                                WallTime deadline) {
  PlanContext& context = gate.context;
  if (!candidates.warm.empty()) {
    return StopWaiting(candidates);
  }
  for (const WarmingNode& warming : candidates.warming) {
    const LiveKey* key = FindKey(context, context.nodes[warming.node].target, pod.factors);
    if (key == nullptr || !warming.forecast) {
      continue;
    }
    const HoldCost cost{.created = pod.pod->meta.created,
                        .deadline = deadline,
                        .gain = gate.estimator.GainOf(*key)};
    if (IsWorthWaiting(cost, *warming.forecast, context.in.now)) {
      RequeueAt(context, WorthWaitingUntil(cost, *warming.forecast, context.in.now));
      Reserve(context, warming.node, *pod.shape);
      return std::nullopt;
    }
  }
  return StopWaiting(candidates);
}

const BuilderCandidate* FindBuilderCandidate(const PlanContext& context, size_t pod) {
  for (const BuilderCandidate& candidate : context.builder_candidates) {
    if (candidate.pod == pod) {
      return &candidate;
    }
  }
  return nullptr;
}

std::optional<ReleaseDecision> DecideRelease(GateContext& gate, size_t index, WallTime deadline) {
  PlanContext& context = gate.context;
  const PodView& pod = context.pods[index];
  const CandidateNodes& candidates = gate.candidates.For(pod);
  if (gate.release_all) {
    return ReleaseDecision{reason::kReleasedHoldingDisabled, PreferWarm(candidates)};
  }
  if (const std::string_view never = WhyNeverHeld(context, *pod.pod); !never.empty()) {
    // Add no preference: the owner of the other gate may already have decided the placement.
    const bool other = never == reason::kReleasedOtherGate;
    return ReleaseDecision{never, other ? std::vector<size_t>() : PreferWarm(candidates)};
  }
  if (const BuilderCandidate* candidate = FindBuilderCandidate(context, index)) {
    return ReleaseDecision{reason::kReleasedForBuild, context.targets[candidate->target].nodes};
  }
  if (context.in.now >= deadline) {
    return ReleaseDecision{reason::kReleasedAtDeadline, PreferWarm(candidates)};
  }
  return context.in.warmup.spec.gate.mode == api::GateMode::kHold
             ? DecideInHoldMode(gate, pod, candidates)
             : DecideInAutoMode(gate, pod, candidates, deadline);
}

GateDecision EvaluateGate(GateContext& gate, size_t index) {
  PlanContext& context = gate.context;
  const PodView& pod = context.pods[index];
  const WallTime deadline = gate.deadlines.DeadlineOf(*pod.pod);
  GateDecision out{
      .pod = index, .deadline = deadline, .release = DecideRelease(gate, index, deadline)};
  const CandidateNodes& candidates = gate.candidates.For(pod);
  const BuilderCandidate* candidate = FindBuilderCandidate(context, index);
  const bool has_capacity = candidate != nullptr && candidate->has_capacity;
  out.excludes_unusable = has_capacity || ExcludesUnusable(context, candidates, *pod.shape);
  if (out.release && out.release->reason == reason::kReleasedWarm) {
    Reserve(context, candidates.warm.front(), *pod.shape);
  }
  return out;
}

// Holds all pods of a group or none: if one pod of the group is not held, the others are released,
// even if that pod belongs to another warmup.
void KeepGroupsTogether(const PlanContext& context, std::vector<GateDecision>& decisions) {
  std::set<std::string> free = context.in.groups_free_elsewhere;
  for (const PodView& pod : context.pods) {
    if (!pod.held && !pod.finished && !pod.pod->meta.deleting && !pod.of_job) {
      free.insert(GroupOf(*pod.pod));
    }
  }
  for (const GateDecision& decision : decisions) {
    if (decision.release) {
      free.insert(GroupOf(*context.pods[decision.pod].pod));
    }
  }
  free.erase("");
  for (GateDecision& decision : decisions) {
    if (!decision.release && free.contains(GroupOf(*context.pods[decision.pod].pod))) {
      decision.release = ReleaseDecision{reason::kReleasedWithGroup, {}};
    }
  }
}

void Release(GateContext& gate, const GateDecision& decision, size_t excluded_max) {
  PlanContext& context = gate.context;
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
  context.out.releases.push_back(std::move(release));
}

void AnnotateHeld(PlanContext& context, const PodView& pod, WallTime deadline) {
  const api::ObjectMeta& meta = pod.pod->meta;
  RequeueAt(context, deadline);
  if (meta.annotations.contains(api::kHeldUntilAnnotation)) {
    return;
  }
  if (context.in.now < meta.created + kUnreportedHoldMax) {
    RequeueAt(context, meta.created + kUnreportedHoldMax);
    return;
  }
  context.out.annotations.push_back({.ns = meta.ns,
                                     .pod = meta.name,
                                     .uid = meta.uid,
                                     .key = std::string(api::kHeldUntilAnnotation),
                                     .value = FormatTime(deadline),
                                     .held = pod.pod});
  context.out.events.push_back(MakePodEvent(
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
void ReserveForUnbound(PlanContext& context) {
  const PodShape& shape = context.pod_template.shape;
  size_t node = 0;
  const auto is_full = [&] { return !context.nodes[node].possible || !Fits(context, node, shape); };
  for (const PodView& pod : context.pods) {
    if (!pod.injected || pod.held || pod.finished || !pod.pod->node.empty() ||
        HasOtherGate(*pod.pod)) {
      continue;
    }
    while (node < context.nodes.size() && is_full()) {
      ++node;
    }
    if (node == context.nodes.size()) {
      return;
    }
    Reserve(context, node, shape);
  }
}

}  // namespace

void DecideGates(PlanContext& context) {
  ReserveForUnbound(context);
  const WaitEstimator estimator(context);
  GateContext gate{
      .context = context,
      .estimator = estimator,
      .deadlines =
          HoldDeadlines(context.in.pods, MaxHold(context.in.warmup, context.in.constraints)),
      .candidates = CandidateNodesCache(context, estimator),
      .release_all = context.deleting() || context.paused() || !context.acceptance.inject ||
                     context.in.warmup.spec.gate.mode == api::GateMode::kNever};
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
      AnnotateHeld(context, context.pods[decision.pod], decision.deadline);
    }
  }
  PutBuildersFirst(context.out.releases);
}

}  // namespace cachewarm::plan
