// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/gates/hold_policy.h"

#include <algorithm>

#include "lib/api/reasons.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/model/pod_groups.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

bool HasGatedTemplate(const RolloutConstraints& /*constraints*/, const TemplateView& view) {
  return view.pod_template != nullptr &&
         (model::IsOfKueue(model::AsPod(view.pod_template)) ||
          !codec::ListAt(*view.pod_template, {"spec", "schedulingGates"}).empty());
}

bool HasGangTemplate(const RolloutConstraints& /*constraints*/, const TemplateView& view) {
  return view.pod_template != nullptr && model::IsOfUnknownGang(model::AsPod(view.pod_template));
}

constexpr WorkloadRule kWorkloadRules[] = {
    {.when = "the Deployment has the strategy Recreate",
     .applies = [](const auto& constraints, const auto&) { return constraints.recreate; },
     .reason = reason::kReleasedRecreate},
    {.when = "the workload rolls out without an additional pod (maxSurge is 0)",
     .applies = [](const auto& constraints, const auto&) { return constraints.no_surge; },
     .reason = reason::kReleasedNoSurge},
    {.when = "the StatefulSet starts its pods one by one",
     .applies = [](const auto& constraints, const auto&) { return constraints.in_order; },
     .reason = reason::kReleasedInOrder},
    {.when = "activeDeadlineSeconds is set on the Job or its pods",
     .applies = [](const auto& constraints, const auto&) { return constraints.job_deadline; },
     .reason = reason::kReleasedJobDeadline},
    {.when = "Kueue decides when the pods of the workload start",
     .applies = [](const auto& constraints, const auto&) { return constraints.queued; },
     .reason = reason::kReleasedOtherGate,
     .preference = ReleasePreference::kNone},
    {.when = "the pod template has a scheduling gate or belongs to Kueue",
     .applies = HasGatedTemplate,
     .reason = reason::kReleasedOtherGate,
     .preference = ReleasePreference::kNone},
    {.when = "the pod template belongs to a gang of an unsupported kind",
     .applies = HasGangTemplate,
     .reason = reason::kReleasedUnknownGang},
};

// Returns status.minAvailable. After the workload is scaled up, this minimum does not rise until as
// many pods are available as the new size requires.
int64_t NextMinAvailable(const Snapshot& in) {
  const RolloutConstraints& constraints = in.constraints;
  return constraints.available >= constraints.required
             ? constraints.required
             : std::min(in.warmup.status.min_available, constraints.required);
}

}  // namespace

std::span<const WorkloadRule> WorkloadRules() {
  return kWorkloadRules;
}

HoldPolicy DecideHoldPolicy(const Snapshot& in, const TemplateView& pod_template) {
  const auto* const rule = std::find_if(
      std::begin(kWorkloadRules), std::end(kWorkloadRules),
      [&](const WorkloadRule& each) { return each.applies(in.constraints, pod_template); });
  return {.never_held = rule == std::end(kWorkloadRules) ? nullptr : rule,
          .min_available = NextMinAvailable(in)};
}

bool IsBelowMinAvailable(const Context& context) {
  return context.in.constraints.available < context.hold.min_available;
}

}  // namespace cachewarm::plan
