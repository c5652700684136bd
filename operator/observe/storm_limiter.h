// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "lib/base/clock.h"

namespace cachewarm::observe {

// Bounds how often changes of pods have a warmup planned, because any tenant may change a pod
// thousands of times. A plan is due kPodBurst after a change, so that it covers the changes of a
// burst. Each warmup may have 500 such plans at once, more than a rollout of hundreds of pods
// needs, and one more per second. Without any left, a plan is due kStormDelay after the change.
// Used by one thread.
class StormLimiter {
 public:
  static constexpr Duration kPodBurst{20};
  static constexpr Duration kStormDelay{1'000};
  static constexpr double kPlansMax = 500;

  // Returns the delay of the plan of `warmup` ("ns/name") after a change at `now`.
  Duration DelayFor(const std::string& warmup, MonoTime now);

 private:
  struct Bucket {
    double plans = kPlansMax;  // plans left
    MonoTime filled{};         // time of `plans`
    MonoTime counted{};        // time of the change for which a plan was taken
    Duration delay{0};         // delay of that plan
  };

  std::map<std::string, Bucket> buckets_;
  MonoTime pruned_{};
};

}  // namespace cachewarm::observe
