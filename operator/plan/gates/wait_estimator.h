// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/plan/bundles.h"

// Estimates the cost and the gain of holding a pod (docs/design/0011). Pure.
namespace cachewarm::plan {

// The time at which a node is expected to be warm.
struct Forecast {
  WallTime end{};
  // True if `end` is computed from the present time, so that it moves with the clock until progress
  // is reported.
  bool is_stalled = false;
};

// The inputs of the decision to hold one pod.
struct HoldCost {
  WallTime created{};
  WallTime deadline{};
  Duration gain{0};  // time that a warm start saves: WaitEstimator::GainOf()
};

class WaitEstimator {
 public:
  // The sources of the estimates. Everything must outlive the estimator.
  struct Inputs {
    const Context& context;
    const Bundles& bundles;
    const std::vector<api::BuilderStatus>& builders;
    const api::Starts& starts;
  };
  explicit WaitEstimator(Inputs inputs);

  // Forecasts when nodes have the bundle that is being built for `key`. Returns nullopt if no build
  // is running, or if the builder is not ready yet and no comparable cold start was measured.
  std::optional<Forecast> ForecastBuild(const LiveKey& key) const;
  // Forecasts when `node` has `bundle` active. Takes the fetch rate from the agent's progress, else
  // from other fetches of this warmup, else a default. Adds the time that the node waits for a
  // fetch slot: `slots_before` slot durations.
  Forecast ForecastFetch(const NodeState& node, const api::BundleStatus& bundle,
                         int slots_before) const;
  // Returns by how much a warm start of `key` is shorter than a cold one. Without a measured warm
  // start, returns 30 s, but no more than a cold start takes. Returns 0 if starts showed that the
  // engine does not use the bundle.
  Duration GainOf(const LiveKey& key) const;

 private:
  double MedianFetchRate() const;
  std::optional<Forecast> ForecastProof(const LiveKey& key,
                                        const api::BuilderStatus& builder) const;

  const Inputs in_;
  double median_rate_ = 0;  // bytes per second
};

// Returns the time left until the node is warm. A node that is overdue by x is expected to need x
// more.
Duration RemainingTime(const Forecast& forecast, WallTime now);

// True if the time that the pod has been held plus the time left until the node is warm is less
// than the gain, and the node is warm before the deadline.
bool IsWorthWaiting(const HoldCost& cost, const Forecast& forecast, WallTime now);
// Returns the time at which waiting stops being worthwhile if nothing changes. Call only while
// IsWorthWaiting() is true.
WallTime WorthWaitingUntil(const HoldCost& cost, const Forecast& forecast, WallTime now);

}  // namespace cachewarm::plan
