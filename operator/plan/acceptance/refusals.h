// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/plan/plan_context.h"

// The checks that can refuse injection, grouped by the kind of change that can resolve a refusal.
// Pure, except that PendingDryRun requests a dry run and UpdateSuspension updates
// status.suspension.
namespace cachewarm::plan {

// The result of one check; nullopt if the check allows injection. Otherwise a value for the
// warmup's condition `Ready`: status False, with reason and message of the refusal.
using Refusal = std::optional<api::ConditionUpdate>;

Refusal Refuse(std::string_view why, std::string message);

// True if pods were injected until now. Some checks refuse only a warmup that does not inject yet.
bool WasInjecting(const PlanContext& context);

// Returns the labels that identify the workload's pods at admission.
std::map<std::string, std::string> InjectionLabels(const PlanContext& context);

// hard.cc: refusals that only a user can resolve. Until then this warmup's entries in NodeCaches
// stay, and none are added.
Refusal InvalidSpec(const PlanContext& context);
Refusal ForbiddenNamespace(const PlanContext& context);
Refusal HardRefusal(const PlanContext& context);

// soft.cc: refusals that resolve without the user: the API server rejects pods, injection is
// suspended, or directories are not prepared.
Refusal SoftRefusal(const PlanContext& context);
// Checks only whether the API server rejects pods.
Refusal RefusedByServer(const PlanContext& context);

struct InjectionFailure {
  std::string_view reason;
  std::string message;
  std::string revision;              // revision of the affected pods
  std::vector<const PodView*> pods;  // affected pods
};

// injection_failure.cc: detects pods whose cache volume a kubelet or runtime rejects, and pods that
// crash before they are Ready even with a new copy of the cache directory.
std::optional<InjectionFailure> DetectInjectionFailure(const PlanContext& context);
// True if the cache is not the cause of crashes: pods of the revision were ready with the cache, or
// also crash without it.
bool HasOtherCrashCause(const PlanContext& context, const std::string& revision);

// suspension.cc: updates status.suspension. A suspension ends when one of these changes: the pod
// template, the warmup's spec, the injected environment, the namespace's labels, or every affected
// node. It also ends when pods show that the cache is not, or no longer, the cause of the failure.
void UpdateSuspension(PlanContext& context);
Refusal Suspended(const PlanContext& context);

// dry_run.cc: requests a dry run unless the API server has recently answered one for the same pod.
// Refuses a warmup that does not inject yet until the answer is known. A warmup that already
// injects continues until the API server rejects the pod.
Refusal PendingDryRun(PlanContext& context);

}  // namespace cachewarm::plan
