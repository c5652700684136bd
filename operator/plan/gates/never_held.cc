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

// What the template alone says about its pods.
std::string_view OfTemplate(const TemplateView& view) {
  if (view.pod_template == nullptr) {
    return "";
  }
  const api::Pod pod = AsPod(view.pod_template);
  if (IsOfKueue(pod) || !render::List(*view.pod_template, {"spec", "schedulingGates"}).empty()) {
    return reason::kReleasedOtherGate;
  }
  return IsOfUnknownGang(pod) ? reason::kReleasedUnknownGang : std::string_view();
}

// A larger size promises nothing yet: what was never there cannot be lost.
void NotePromise(Round& round) {
  const Promises& promises = round.in.promises;
  int64_t& promised = round.out.status.promised;
  promised = promises.available >= promises.required ? promises.required
                                                     : std::min(promised, promises.required);
}

}  // namespace

void FindNeverHeld(Round& round) {
  NotePromise(round);
  const Promises& promises = round.in.promises;
  if (promises.recreate) {
    round.never_held = reason::kReleasedRecreate;
  } else if (promises.no_surge) {
    round.never_held = reason::kReleasedNoSurge;
  } else if (promises.in_order) {
    round.never_held = reason::kReleasedInOrder;
  } else if (promises.job_deadline) {
    round.never_held = reason::kReleasedJobDeadline;
  } else if (promises.queued) {
    round.never_held = reason::kReleasedOtherGate;
  } else {
    round.never_held = OfTemplate(round.pod_template);
  }
}

bool IsBelowPromise(const Round& round) {
  return round.in.promises.available < round.out.status.promised;
}

std::string_view WhyNeverHeld(const Round& round, const api::Pod& pod) {
  if (!round.never_held.empty()) {
    return round.never_held;
  }
  if (HasOtherGate(pod) || IsOfKueue(pod)) {
    return reason::kReleasedOtherGate;
  }
  if (IsOfUnknownGang(pod)) {
    return reason::kReleasedUnknownGang;
  }
  return IsBelowPromise(round) ? reason::kReleasedBelowPromise : std::string_view();
}

}  // namespace cachewarm::plan
