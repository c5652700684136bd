// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/api/reasons.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/plan/acceptance/refusals.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr size_t kNodeSelectorMax = 32;

// Evaluates the checks, in their order, and fills the parts of `out` that do not depend on a
// refusal.
Refusal EvaluateRefusals(const Context& context, Acceptance& out) {
  if (Refusal refusal = HardRefusal({context, out.suspension})) {
    out.hard = true;
    return refusal;
  }
  DryRunDecision dry_run = DecideDryRun(context);
  out.dry_run = std::move(dry_run.request);
  out.recheck_at = dry_run.recheck_at;
  out.suspension = NextSuspension(context);
  Refusal refusal = SoftRefusal({context, out.suspension});
  return refusal ? refusal : dry_run.refusal;
}

// Returns the node selector by which the nodes of this plan were evaluated. Pods of one workload
// with several templates (a group, or the workloads of a selector) may each have another one: then
// returns the entries that all have, so that the pods of every template are injected.
std::map<std::string, std::string> EvaluatedNodeSelector(const Context& context) {
  const auto selector_of = [](const codec::Json& object) {
    return codec::Texts(codec::At(object, {"spec", "nodeSelector"}));
  };
  const WorkloadKind kind = context.in.workload.kind;
  if (kind == WorkloadKind::kGroup) {
    return {};
  }
  auto out = selector_of(*context.pod_template.pod_template);
  for (const PodView& pod : context.pods) {
    if (kind != WorkloadKind::kSelector || pod.of_job || pod.finished ||
        pod.pod->object == nullptr) {
      continue;
    }
    const auto other = selector_of(*pod.pod->object);
    std::erase_if(out, [&](const auto& entry) {
      const auto found = other.find(entry.first);
      return found == other.end() || found->second != entry.second;
    });
  }
  // A longer list does not fit the schema, and each entry only restricts further.
  while (out.size() > kNodeSelectorMax) {
    out.erase(std::prev(out.end()));
  }
  return out;
}

api::Injection MakeInjection(const Context& context) {
  api::Injection out{.labels = InjectionLabels(context),
                     .container = context.pod_template.factors.container,
                     .env = context.workload.env,
                     .node_selector = EvaluatedNodeSelector(context)};
  if (context.in.warmup.status.injection) {
    out.warm_revisions = context.in.warmup.status.injection->warm_revisions;
  }
  return out;
}

// True if a warmup was injecting, and the pod template cannot be read now: no pod that matches the
// selector is left, or the Job was deleted. The last template is assumed to be valid for the next
// pods. The pods of a Job that is created again are created within milliseconds, before the
// operator can react.
bool IsBetweenPods(const AcceptanceContext& context) {
  const Workload& workload = context.in.workload;
  const bool is_absent = workload.kind == WorkloadKind::kJob && !workload.found;
  return (workload.kind == WorkloadKind::kSelector || is_absent) &&
         context.pod_template.pod_template == nullptr && WasInjecting(context) &&
         !ForbiddenNamespace(context) && !InvalidSpec(context);
}

Acceptance ContinueBetweenPods(const Context& context, std::optional<api::Suspension> suspension) {
  return {.ready = {.holds = true,
                    .reason = std::string(reason::kInjecting),
                    .message = "no pods are running; new pods will receive the cache"},
          .inject = true,
          .hard = true,
          .injection = context.in.warmup.status.injection,
          .suspension = std::move(suspension)};
}

}  // namespace

Refusal Refuse(std::string_view why, std::string message) {
  return api::ConditionUpdate{
      .holds = false, .reason = std::string(why), .message = std::move(message)};
}

bool WasInjecting(const Context& context) {
  return context.in.warmup.status.injection.has_value();
}

std::map<std::string, std::string> InjectionLabels(const Context& context) {
  const Workload& workload = context.in.workload;
  if (workload.kind == WorkloadKind::kJob) {
    // The Job's own selector contains its uid, which changes when the Job is created again.
    return {{"batch.kubernetes.io/job-name", workload.name}};
  }
  return workload.selector.empty() ? context.pod_template.labels : workload.selector;
}

Acceptance DecideAcceptance(const Context& context) {
  Acceptance out{.suspension = context.in.warmup.status.suspension};
  if (context.deleting()) {
    out.hard = true;
    return out;
  }
  if (IsBetweenPods({context, out.suspension})) {
    // Failed pods give no template, but their crashes must still suspend injection.
    out.suspension = NextSuspension(context);
    const AcceptanceContext now(context, out.suspension);
    if (!Suspended(now) && !RefusedByServer(now)) {
      return ContinueBetweenPods(context, out.suspension);
    }
  }
  const Refusal refusal = EvaluateRefusals(context, out);
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
    out.injection = MakeInjection(context);
  }
  return out;
}

}  // namespace cachewarm::plan
