// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "operator/plan/round.h"

// Why pods are not injected, by what could change it. Pure but for UnansweredRehearsal's wish.
namespace cachewarm::plan {

// What condition Ready says in place of Injecting; nothing: no objection.
using Refusal = std::optional<api::Verdict>;

Refusal No(std::string_view why, std::string message);

// Pods were injected until now: what goes on needs less than what begins.
bool WasInjecting(const Round& round);

// What tells the workload's pods from others at admission.
std::map<std::string, std::string> InjectionLabels(const Round& round);

// hard.cc: what only a user can change. While it stands, what is there stays and nothing is new.
Refusal BadSpec(const Round& round);
Refusal ForbiddenNamespace(const Round& round);
Refusal HardRefusal(const Round& round);

// soft.cc: what changes by itself: an API server that refuses, pods that suffer, directories that
// are not prepared.
Refusal SoftRefusal(const Round& round);

// harm.cc: what pods suffer because of us, as far as it shows: a volume that a kubelet or runtime
// rejects, or crashes before Ready that a fresh tree did not end. Ends by itself when those pods
// are gone or get ready.
Refusal FindHarm(const Round& round);

// rehearsing.cc: wishes a rehearsal where none is recent. Refuses only a warmup that was never let
// in: one that injects already goes on until an answer says otherwise.
Refusal UnansweredRehearsal(Round& round);

}  // namespace cachewarm::plan
