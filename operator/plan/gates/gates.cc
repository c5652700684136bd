// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "operator/model/pod_groups.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/gate_rules.h"
#include "operator/plan/gates/hold_deadline.h"
#include "operator/render/affinity.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr size_t kExcludedHostnamesMax = 200'000;  // limit for all releases of one plan together

double HeldSeconds(const Context& context, const api::Pod& pod) {
  const auto held = std::max(context.in.now - pod.meta.created, Duration{0});
  return std::chrono::duration<double>(held).count();
}

// Returns how many hostnames each of `pods` releases may exclude. This bounds the number of
// excluded hostnames in one plan.
size_t ExcludedMax(size_t pods) {
  return std::clamp(kExcludedHostnamesMax / std::max<size_t>(pods, 1), render::kPreferredMax,
                    render::kRequiredMax);
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
  GateContext gate(context, out);
  std::vector<GateDecision> decisions;
  for (size_t i = 0; i < context.pods.size(); ++i) {
    const PodView& pod = context.pods[i];
    if (pod.held && !pod.of_other_warmup && !pod.pod->meta.deleting) {
      decisions.push_back(DecideGate(gate, i));
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
