// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/plan/plan_context.h"

// Why pods are not injected, by what could change it. Pure but for PendingDryRun's wish and
// what UpdateSuspension remembers.
namespace cachewarm::plan {

// What condition Ready says in place of Injecting; nothing: no objection.
using Refusal = std::optional<api::ConditionUpdate>;

Refusal Refuse(std::string_view why, std::string message);

// Pods were injected until now: what goes on needs less than what begins.
bool WasInjecting(const PlanContext& context);

// What tells the workload's pods from others at admission.
std::map<std::string, std::string> InjectionLabels(const PlanContext& context);

// hard.cc: what only a user can change. While it stands, what is there stays and nothing is new.
Refusal InvalidSpec(const PlanContext& context);
Refusal ForbiddenNamespace(const PlanContext& context);
Refusal HardRefusal(const PlanContext& context);

// soft.cc: what changes by itself: an API server that refuses, pods that suffer, directories that
// are not prepared.
Refusal SoftRefusal(const PlanContext& context);
// The first of these alone.
Refusal RefusedByServer(const PlanContext& context);

struct InjectionFailure {
  std::string_view reason;
  std::string message;
  std::string revision;              // of the pods
  std::vector<const PodView*> pods;  // that suffer it
};

// harm.cc: what pods suffer now because of us, as far as it shows: a volume that a kubelet or
// runtime rejects, or crashes before Ready that a fresh tree did not end.
std::optional<InjectionFailure> DetectInjectionFailure(const PlanContext& context);
// Pods of the revision were ready with the cache, or crash without it too.
bool HasOtherCrashCause(const PlanContext& context, const std::string& revision);

// suspension.cc: keeps status.suspension: what pods suffered, until the pod template, the policy,
// the warmup or every node that they ran on is another.
void UpdateSuspension(PlanContext& context);
Refusal Suspended(const PlanContext& context);

// rehearsing.cc: wishes a rehearsal where none is recent. Refuses only a warmup that was never let
// in: one that injects already goes on until an answer says otherwise.
Refusal PendingDryRun(PlanContext& context);

}  // namespace cachewarm::plan
