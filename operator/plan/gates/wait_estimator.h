// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/plan/plan_context.h"

// What waiting costs and what it brings (docs/design/0011). Pure.
namespace cachewarm::plan {

// When a node is expected to be warm.
struct Forecast {
  WallTime end{};
  bool is_stalled =
      false;  // `end` is so far from now and will be tomorrow: nothing is seen to progress
};

// One held pod as it is weighed.
struct HoldCost {
  WallTime created{};
  WallTime deadline{};
  Duration gain{0};
};

class WaitEstimator {
 public:
  // `context` must outlive it.
  explicit WaitEstimator(const PlanContext& context);

  // Until the bundle of the running build of `key` is on nodes; nothing where there is no build,
  // or no start of its kind was ever measured and the builder is not ready yet.
  std::optional<Forecast> ForecastBuild(const LiveKey& key) const;
  // Until `node`, which wants `bundle`, has it active. By the progress that its agent reports, else
  // by what other fetches of this warmup took, else by a guess; after the turns before its own.
  Forecast ForecastFetch(const NodeState& node, const api::BundleStatus& bundle) const;
  // Seconds that a warm start of `key` is shorter than a cold one; 30 s where neither is known,
  // never more than a cold start takes; 0 where the engine was seen not to use the bundle.
  Duration GainOf(const LiveKey& key) const;

 private:
  double MedianFetchRate() const;

  const PlanContext& context_;
  double median_rate_ = 0;  // bytes per second
};

// What is left of a forecast. One that has passed is expected to need as long again as it is late.
Duration RemainingTime(const Forecast& forecast, WallTime now);

// Time already spent and time to come together are less than what they bring, and the wait ends
// before the deadline.
bool IsWorthWaiting(const HoldCost& cost, const Forecast& forecast, WallTime now);
// While it pays: the moment at which it stops to, if nothing changes.
WallTime WorthWaitingUntil(const HoldCost& cost, const Forecast& forecast, WallTime now);

}  // namespace cachewarm::plan
