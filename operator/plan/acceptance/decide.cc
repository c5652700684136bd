// SPDX-License-Identifier: Apache-2.0
#include "lib/api/reasons.h"
#include "operator/plan/acceptance/refusals.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

Refusal Accepts(Round& round) {
  if (Refusal refusal = HardRefusal(round)) {
    round.acceptance.hard = true;
    return refusal;
  }
  Refusal unrehearsed = UnansweredRehearsal(round);
  FollowHarm(round);
  Refusal refusal = SoftRefusal(round);
  return refusal ? refusal : unrehearsed;
}

api::Injection MakeInjection(const Round& round) {
  api::Injection out{.labels = InjectionLabels(round),
                     .container = round.pod_template.factors.container,
                     .env = round.env};
  if (round.in.warmup.status.injection) {
    out.warm_revisions = round.in.warmup.status.injection->warm_revisions;
  }
  return out;
}

// The pods that a selector's template was learnt from are gone: what it was stays good for the
// next.
bool IsBetweenPods(const Round& round) {
  return round.in.workload.kind == WorkloadKind::kSelector &&
         round.pod_template.pod_template == nullptr && WasInjecting(round) &&
         !ForbiddenNamespace(round) && !BadSpec(round);
}

// Pods that end once show what they suffered only when none is left to learn the template from.
bool GoesOnBetweenPods(Round& round) {
  if (!IsBetweenPods(round)) {
    return false;
  }
  FollowHarm(round);
  return !Withdrawn(round) && !RefusedByServer(round);
}

}  // namespace

Refusal No(std::string_view why, std::string message) {
  return api::Verdict{.holds = false, .reason = std::string(why), .message = std::move(message)};
}

bool WasInjecting(const Round& round) {
  return round.in.warmup.status.injection.has_value();
}

std::map<std::string, std::string> InjectionLabels(const Round& round) {
  const Workload& workload = round.in.workload;
  if (workload.kind == WorkloadKind::kJob) {
    // Its own selector names the uid of this one Job; a Job made again has another.
    return {{"batch.kubernetes.io/job-name", workload.name}};
  }
  return workload.selector.empty() ? round.pod_template.labels : workload.selector;
}

void DecideAcceptance(Round& round) {
  Acceptance& out = round.acceptance;
  if (round.deleting()) {
    round.out.status.injection.reset();
    out.hard = true;
    return;
  }
  if (GoesOnBetweenPods(round)) {
    out = {.ready = {.holds = true,
                     .reason = std::string(reason::kInjecting),
                     .message = "no pod is left; the next ones get the cache"},
           .inject = true,
           .hard = true};
    return;
  }
  const Refusal refusal = Accepts(round);
  const bool waits = round.paused() && !WasInjecting(round);
  out.inject = !refusal && !waits;
  if (refusal) {
    out.ready = *refusal;
  } else if (round.paused()) {
    out.ready = {.holds = !waits,
                 .reason = std::string(reason::kPaused),
                 .message = "spec.paused is set: what is there stays, nothing new is done"};
  } else {
    out.ready = {.holds = true,
                 .reason = std::string(reason::kInjecting),
                 .message = "new pods get the cache"};
  }
  if (out.inject) {
    round.out.status.injection = MakeInjection(round);
  } else {
    round.out.status.injection.reset();
  }
}

}  // namespace cachewarm::plan
