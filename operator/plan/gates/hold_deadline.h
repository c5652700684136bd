// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/api/kubernetes.h"
#include "lib/base/clock.h"
#include "operator/plan/snapshot.h"

// How long pods may be held: one budget for a rollout, not one for each of its pods, or pods that
// are made one after the other would hold it up as many times. Everything is read from the pods, so
// that each leader, and the sweep of held pods, judges the same. Pure.
namespace cachewarm::plan {

// A hold this short is neither told nor counted.
inline constexpr Duration kUnreportedHoldMax = std::chrono::seconds(2);

// spec.gate.maxHoldSeconds, and never longer than half of the Deployment's progressDeadlineSeconds,
// nor than leaves a pod twice the time that a cold start usually takes.
Duration MaxHold(const api::CacheWarmup& warmup, const RolloutConstraints& constraints);

// A rollout is a run of pods of one revision with no 10 minutes between two creations. Its budget
// begins with the creation of the first pod that is held, or was for kUnreportedHoldMax or longer;
// a pod that was says so in its annotations. Pods that are gone are forgotten.
class HoldDeadlines {
 public:
  // Pods in any order; those that are not of one warmup are the caller's to leave out.
  HoldDeadlines(const std::vector<std::shared_ptr<const api::Pod>>& pods, Duration longest);

  // The time by which `pod` is released; by its own creation where it is not among the pods. Never
  // later than the pod says itself, though the pod that began the budget may be gone by now.
  WallTime DeadlineOf(const api::Pod& pod) const;

 private:
  WallTime EndFor(const api::Pod& pod) const;

  struct Rollout {
    WallTime last{};        // creation of its last pod
    WallTime first_held{};  // zero: none
  };

  Duration longest_;
  // By revision, then by the creation of the first pod.
  std::map<std::string, std::map<WallTime, Rollout>> rollouts_;
};

}  // namespace cachewarm::plan
