// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/plan/plan_context.h"

// Estimates the cost and the gain of holding a pod (docs/design/0011). Pure.
namespace cachewarm::plan {

// The time at which a node is expected to be warm.
struct Forecast {
  WallTime end{};
  bool is_stalled = false;  // no progress is observed: `end` moves with the clock
};

// The inputs of the decision to hold one pod.
struct HoldCost {
  WallTime created{};
  WallTime deadline{};
  Duration gain{0};
};

class WaitEstimator {
 public:
  // `context` must outlive it.
  explicit WaitEstimator(const PlanContext& context);

  // Forecasts when the bundle of the running build of `key` reaches nodes; nullopt without a build,
  // or if no comparable start was measured and the builder is not ready yet.
  std::optional<Forecast> ForecastBuild(const LiveKey& key) const;
  // Forecasts when `node` has `bundle` active. Takes the fetch rate from the agent's progress, else
  // from other fetches of this warmup, else a default; adds the fetch slots before the node's own.
  Forecast ForecastFetch(const NodeState& node, const api::BundleStatus& bundle) const;
  // Returns by how much a warm start of `key` is shorter than a cold one. Without a measured warm
  // start, 30 s, but at most a cold start. 0 if starts showed that the engine does not use the
  // bundle.
  Duration GainOf(const LiveKey& key) const;

 private:
  double MedianFetchRate() const;

  const PlanContext& context_;
  double median_rate_ = 0;  // bytes per second
};

// Returns the time left until the node is warm. A node that is late is expected to take as long
// again as it is late.
Duration RemainingTime(const Forecast& forecast, WallTime now);

// True if the time already held plus the time left is less than the gain, and the wait ends before
// the deadline.
bool IsWorthWaiting(const HoldCost& cost, const Forecast& forecast, WallTime now);
// Returns the time at which waiting stops being worthwhile if nothing changes. Call only while
// IsWorthWaiting() is true.
WallTime WorthWaitingUntil(const HoldCost& cost, const Forecast& forecast, WallTime now);

}  // namespace cachewarm::plan
