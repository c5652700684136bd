// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/condition.h"
#include "operator/plan/context.h"
#include "operator/plan/values.h"

// The checks that can refuse injection, grouped by the kind of change that can resolve a refusal.
// Pure.
namespace cachewarm::plan {

// The result of one check; nullopt if the check allows injection. Otherwise a value for the
// warmup's condition `Ready`: status False, with reason and message of the refusal.
using Refusal = std::optional<api::ConditionUpdate>;

// The context of the checks.
struct AcceptanceContext : Context {
  AcceptanceContext(const Context& context, const std::optional<api::Suspension>& current)
      : Context(context), suspension(current) {}

  const std::optional<api::Suspension>& suspension;
};

Refusal Refuse(std::string_view why, std::string message);

// True if pods were injected until now. Some checks refuse only a warmup that does not inject yet.
bool WasInjecting(const Context& context);

// Returns the labels that identify the workload's pods at admission.
std::map<std::string, std::string> InjectionLabels(const Context& context);

// user_refusals.cc: refusals that only a user can resolve. Until then this warmup's entries in
// NodeCaches stay, and none are added.
Refusal InvalidSpec(const AcceptanceContext& context);
Refusal ForbiddenNamespace(const AcceptanceContext& context);
Refusal HardRefusal(const AcceptanceContext& context);

// cluster_refusals.cc: refusals that resolve without the user: the API server rejects pods,
// injection is suspended, or directories are not prepared.
Refusal SoftRefusal(const AcceptanceContext& context);
// Checks only whether the API server rejects pods.
Refusal RefusedByServer(const AcceptanceContext& context);

struct InjectionFailure {
  std::string_view reason;
  std::string message;
  std::string revision;              // revision of the affected pods
  std::vector<const PodView*> pods;  // affected pods
};

// injection_failure.cc: detects pods whose cache volume a kubelet or runtime rejects, and pods that
// crash before they are Ready even with a new copy of the cache directory.
std::optional<InjectionFailure> DetectInjectionFailure(const AcceptanceContext& context);
// True if the cache is not the cause of crashes: pods of the revision were ready with the cache, or
// also crash without it.
bool HasOtherCrashCause(const AcceptanceContext& context, const std::string& revision);

// suspension.cc: returns status.suspension, computed from its present value. A suspension ends when
// one of these changes: the pod template, the warmup's spec, the injected environment, the
// namespace's labels, or every affected node. It also ends when pods show that the cache is not, or
// no longer, the cause of the failure.
std::optional<api::Suspension> NextSuspension(const Context& context);
Refusal Suspended(const AcceptanceContext& context);

// dry_run.cc: requests a dry run unless the API server has recently answered one for the same pod.
// Refuses a warmup that does not inject yet until the answer is known. A warmup that already
// injects continues until the API server rejects the pod.
struct DryRunDecision {
  Refusal refusal;
  std::optional<DryRunRequest> request;
  std::optional<WallTime> recheck_at;
};
DryRunDecision DecideDryRun(const Context& context);

}  // namespace cachewarm::plan
