// SPDX-License-Identifier: Apache-2.0
#include "lib/api/reasons.h"
#include "operator/plan/acceptance/refusals.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

Refusal EvaluateRefusals(PlanContext& context) {
  if (Refusal refusal = HardRefusal(context)) {
    context.acceptance.hard = true;
    return refusal;
  }
  Refusal pending = PendingDryRun(context);
  UpdateSuspension(context);
  Refusal refusal = SoftRefusal(context);
  return refusal ? refusal : pending;
}

api::Injection MakeInjection(const PlanContext& context) {
  api::Injection out{.labels = InjectionLabels(context),
                     .container = context.pod_template.factors.container,
                     .env = context.env};
  if (context.in.warmup.status.injection) {
    out.warm_revisions = context.in.warmup.status.injection->warm_revisions;
  }
  return out;
}

// True if a warmup with a selector was injecting, and no pod is left from which the pod template
// could be read. The last template is assumed to be valid for the next pods.
bool IsBetweenPods(const PlanContext& context) {
  return context.in.workload.kind == WorkloadKind::kSelector &&
         context.pod_template.pod_template == nullptr && WasInjecting(context) &&
         !ForbiddenNamespace(context) && !InvalidSpec(context);
}

// True if injection continues while the warmup has no pod from which the pod template could be
// read. Updates the suspension first: failed pods give no template, but their crashes must still
// suspend injection.
bool ContinuesBetweenPods(PlanContext& context) {
  if (!IsBetweenPods(context)) {
    return false;
  }
  UpdateSuspension(context);
  return !Suspended(context) && !RefusedByServer(context);
}

}  // namespace

Refusal Refuse(std::string_view why, std::string message) {
  return api::ConditionUpdate{
      .holds = false, .reason = std::string(why), .message = std::move(message)};
}

bool WasInjecting(const PlanContext& context) {
  return context.in.warmup.status.injection.has_value();
}

std::map<std::string, std::string> InjectionLabels(const PlanContext& context) {
  const Workload& workload = context.in.workload;
  if (workload.kind == WorkloadKind::kJob) {
    // The Job's own selector contains its uid, which changes when the Job is created again.
    return {{"batch.kubernetes.io/job-name", workload.name}};
  }
  return workload.selector.empty() ? context.pod_template.labels : workload.selector;
}

void DecideAcceptance(PlanContext& context) {
  Acceptance& out = context.acceptance;
  if (context.deleting()) {
    context.out.status.injection.reset();
    out.hard = true;
    return;
  }
  if (ContinuesBetweenPods(context)) {
    out = {.ready = {.holds = true,
                     .reason = std::string(reason::kInjecting),
                     .message = "no pods are running; new pods will receive the cache"},
           .inject = true,
           .hard = true};
    return;
  }
  const Refusal refusal = EvaluateRefusals(context);
  const bool waits = context.paused() && !WasInjecting(context);
  out.inject = !refusal && !waits;
  if (refusal) {
    out.ready = *refusal;
  } else if (context.paused()) {
    out.ready = {
        .holds = !waits,
        .reason = std::string(reason::kPaused),
        .message =
            "paused: existing bundles stay available; no builds, fetches or holds are started"};
  } else {
    out.ready = {.holds = true,
                 .reason = std::string(reason::kInjecting),
                 .message = "new pods get the cache"};
  }
  if (out.inject) {
    context.out.status.injection = MakeInjection(context);
  } else {
    context.out.status.injection.reset();
  }
}

}  // namespace cachewarm::plan
