// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/plan/round.h"

// Why pods are not injected, by what could change it. Pure but for UnansweredRehearsal's wish and
// what FollowHarm remembers.
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
// The first of these alone.
Refusal RefusedByServer(const Round& round);

struct Harm {
  std::string_view why;
  std::string message;
  std::string revision;              // of the pods
  std::vector<const PodView*> pods;  // that suffer it
};

// harm.cc: what pods suffer now because of us, as far as it shows: a volume that a kubelet or
// runtime rejects, or crashes before Ready that a fresh tree did not end.
std::optional<Harm> FindHarm(const Round& round);
// Pods of the revision were ready with the cache, or crash without it too.
bool CrashesOtherwise(const Round& round, const std::string& revision);

// withdrawal.cc: keeps status.withdrawal: what pods suffered, until the pod template, the policy,
// the warmup or every node that they ran on is another.
void FollowHarm(Round& round);
Refusal Withdrawn(const Round& round);

// rehearsing.cc: wishes a rehearsal where none is recent. Refuses only a warmup that was never let
// in: one that injects already goes on until an answer says otherwise.
Refusal UnansweredRehearsal(Round& round);

}  // namespace cachewarm::plan
