// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/api/kubernetes.h"
#include "lib/base/clock.h"
#include "operator/plan/values.h"

// Computes the deadlines of held pods. One hold budget covers a whole rollout, because with a
// budget per pod the holds of pods created one after the other would add up. All inputs are API
// objects, so that every leader of the operator, and the sweep that releases overdue pods, compute
// the same deadlines. Pure.
namespace cachewarm::plan {

// Shorter holds are not reported, and they do not begin the budget of a rollout.
inline constexpr Duration kUnreportedHoldMax = std::chrono::seconds(2);

// Returns the longest hold: the smallest of spec.gate.maxHoldSeconds, half of the workload's
// progressDeadlineSeconds, and that deadline minus two median cold starts. Without a progress
// deadline: spec.gate.maxHoldSeconds.
Duration MaxHold(const api::CacheWarmup& warmup, const RolloutConstraints& constraints);

// A rollout is a sequence of pods of one revision with less than 10 minutes between creations. Its
// budget begins with the creation of the first pod that is held, or was held for kUnreportedHoldMax
// or longer according to its annotations. Deleted pods do not count.
class HoldDeadlines {
 public:
  // Takes the pods of one warmup, in any order. DeadlineOf() also accepts pods created later.
  HoldDeadlines(const std::vector<std::shared_ptr<const api::Pod>>& pods, Duration longest);

  // Returns the time at which `pod` must be released: the end of its rollout's budget or, if no
  // budget has begun before its creation, the longest hold after its creation. Never later than the
  // deadline in the pod's annotation: otherwise the hold would become longer when the pod that
  // began the budget is deleted.
  WallTime DeadlineOf(const api::Pod& pod) const;

 private:
  WallTime EndFor(const api::Pod& pod) const;

  struct Rollout {
    WallTime last{};        // creation of its last pod
    WallTime first_held{};  // creation of the first pod that was held; zero: none
  };

  Duration longest_;
  // Rollouts by revision, then by creation time of their first pod.
  std::map<std::string, std::map<WallTime, Rollout>> rollouts_;
};

}  // namespace cachewarm::plan
