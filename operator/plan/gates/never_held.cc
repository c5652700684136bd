// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/gates/never_held.h"

#include <algorithm>

#include "lib/api/reasons.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/plan/decisions.h"
#include "operator/plan/gates/groups.h"
#include "operator/render/fields.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// Returns the reason why pods are never held, if the template alone shows one; else "".
std::string_view NeverHeldByTemplate(const TemplateView& view) {
  if (view.pod_template == nullptr) {
    return "";
  }
  const api::Pod pod = AsPod(view.pod_template);
  if (IsOfKueue(pod) || !render::List(*view.pod_template, {"spec", "schedulingGates"}).empty()) {
    return reason::kReleasedOtherGate;
  }
  return IsOfUnknownGang(pod) ? reason::kReleasedUnknownGang : std::string_view();
}

// Updates status.minAvailable. After the workload is scaled up, this minimum does not rise until as
// many pods are available as the new size requires.
void UpdateMinAvailable(PlanContext& context) {
  const RolloutConstraints& constraints = context.in.constraints;
  int64_t& minimum = context.out.status.min_available;
  minimum = constraints.available >= constraints.required ? constraints.required
                                                          : std::min(minimum, constraints.required);
}

}  // namespace

void DecideNeverHeld(PlanContext& context) {
  UpdateMinAvailable(context);
  const RolloutConstraints& constraints = context.in.constraints;
  if (constraints.recreate) {
    context.never_held = reason::kReleasedRecreate;
  } else if (constraints.no_surge) {
    context.never_held = reason::kReleasedNoSurge;
  } else if (constraints.in_order) {
    context.never_held = reason::kReleasedInOrder;
  } else if (constraints.job_deadline) {
    context.never_held = reason::kReleasedJobDeadline;
  } else if (constraints.queued) {
    context.never_held = reason::kReleasedOtherGate;
  } else {
    context.never_held = NeverHeldByTemplate(context.pod_template);
  }
}

bool IsBelowMinAvailable(const PlanContext& context) {
  return context.in.constraints.available < context.out.status.min_available;
}

std::string_view WhyNeverHeld(const PlanContext& context, const api::Pod& pod) {
  if (!context.never_held.empty()) {
    return context.never_held;
  }
  if (HasOtherGate(pod) || IsOfKueue(pod)) {
    return reason::kReleasedOtherGate;
  }
  if (IsOfUnknownGang(pod)) {
    return reason::kReleasedUnknownGang;
  }
  return IsBelowMinAvailable(context) ? reason::kReleasedBelowMinAvailable : std::string_view();
}

}  // namespace cachewarm::plan
