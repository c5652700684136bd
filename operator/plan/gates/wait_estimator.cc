// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/gates/wait_estimator.h"

#include <algorithm>
#include <vector>

#include "operator/plan/captures/ranks.h"
#include "operator/plan/starts/savings.h"

namespace cachewarm::plan {

using api::StartResult;
using std::chrono::seconds;

namespace {

constexpr Duration kUnknownGain = seconds(30);
// Assumed time for packing, publishing and the first fetch, after a build has settled.
constexpr Duration kPublish = seconds(5);
// Assumed time for verifying, activating and reporting a bundle after its last byte has arrived.
constexpr Duration kActivate = seconds(1);
constexpr Duration kRemainingMin = seconds(1);
// Caps forecasts, so that a wrong measurement does not overflow a Duration. No hold is this long.
constexpr double kForecastSecondsMax = 86'400;
constexpr double kDefaultRate = 20e6;  // bytes per second; used until a fetch was measured

Duration Seconds(double value) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(value, 0.0, kForecastSecondsMax)));
}

double RateOf(int64_t bytes, double in_seconds) {
  return bytes > 0 && in_seconds > 0 ? static_cast<double>(bytes) / in_seconds : 0;
}

// True if some recent starts with `key` had a bundle but made no use of it (miss, inert or hollow),
// and none used it (hit or partial).
bool IsUseless(const api::Starts& starts, const std::string& key) {
  bool useless = false;
  for (const api::StartSample& sample : starts.recent) {
    if (sample.key != key) {
      continue;
    }
    if (sample.result == StartResult::kHit || sample.result == StartResult::kPartial) {
      return false;
    }
    useless = useless || sample.result == StartResult::kMiss ||
              sample.result == StartResult::kInert || sample.result == StartResult::kHollow;
  }
  return useless;
}

}  // namespace

WaitEstimator::WaitEstimator(Inputs inputs) : in_(inputs) {
  median_rate_ = MedianFetchRate();
}

double WaitEstimator::MedianFetchRate() const {
  std::vector<double> rates;
  for (const api::BundleStatus& bundle : in_.bundles.published()) {
    for (const NodeState& node : in_.context.nodes) {
      const api::NodeBundle* reported = ReportedBundle(node, bundle.digest);
      if (reported != nullptr && reported->state == api::BundleState::kActive) {
        const double rate = RateOf(bundle.bytes, reported->fetch_seconds);
        if (rate > 0) {
          rates.push_back(rate);
        }
      }
    }
  }
  if (rates.empty()) {
    return kDefaultRate;
  }
  const auto middle = rates.begin() + static_cast<ptrdiff_t>(rates.size() / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return *middle;
}

// The start of the proof is warm, and takes at most as long as a cold one.
std::optional<Forecast> WaitEstimator::ForecastProof(const LiveKey& key,
                                                     const api::BuilderStatus& builder) const {
  const double cold = ColdSeconds(in_.starts, {.key = key.key, .gpu_type = key.factors.gpu_type});
  if (cold <= 0) {
    return std::nullopt;
  }
  const PodView* pod = FindPod(in_.context, builder.proof->pod_uid);
  if (pod == nullptr || pod->container == nullptr) {
    return Forecast{.end = in_.context.in.now + Seconds(cold), .is_stalled = true};
  }
  return Forecast{.end = pod->container->started_time + Seconds(cold)};
}

std::optional<Forecast> WaitEstimator::ForecastBuild(const LiveKey& key) const {
  const api::BuilderStatus* builder = FindBuilder(in_.builders, key.key);
  if (builder == nullptr || !IsRunning(*builder)) {
    return std::nullopt;
  }
  if (builder->proof) {
    return ForecastProof(key, *builder);
  }
  const Duration each = seconds(in_.context.in.warmup.spec.compile.settle_seconds) + kPublish;
  const auto ranks_left = static_cast<int64_t>(RanksLeft(in_.context, *builder).size());
  if (builder->captured) {
    return Forecast{.end = builder->captured->captured_time + ranks_left * each};
  }
  const Duration after = (1 + ranks_left) * each;
  const PodView* pod = FindPod(in_.context, builder->pod_uid);
  const WallTime ready = pod == nullptr ? WallTime{} : ReadyAt(in_.context, *pod);
  if (ready != WallTime{}) {
    return Forecast{.end = ready + after};
  }
  const double cold = ColdSeconds(in_.starts, {.key = key.key, .gpu_type = key.factors.gpu_type});
  if (cold <= 0) {
    return std::nullopt;
  }
  if (pod == nullptr || pod->container == nullptr || !pod->container->running) {
    return Forecast{.end = in_.context.in.now + Seconds(cold) + after, .is_stalled = true};
  }
  return Forecast{.end = pod->container->started_time + Seconds(cold) + after};
}

Forecast WaitEstimator::ForecastFetch(const NodeState& node, const api::BundleStatus& bundle,
                                      int slots_before) const {
  double rate = median_rate_;
  int64_t left = bundle.bytes;
  const api::NodeBundle* reported = ReportedBundle(node, bundle.digest);
  if (reported != nullptr && reported->state == api::BundleState::kFetching) {
    const double seen = RateOf(reported->bytes_done, reported->fetch_seconds);
    rate = seen > 0 ? seen : rate;
    left = std::max<int64_t>(bundle.bytes - reported->bytes_done, 0);
  }
  // Each slot before the node's own is assumed to last as long as a fetch of this bundle.
  const Duration slot = Seconds(static_cast<double>(bundle.bytes) / median_rate_) + kActivate;
  const Duration own = Seconds(static_cast<double>(left) / rate) + kActivate;
  return {.end = in_.context.in.now + slots_before * slot + own, .is_stalled = true};
}

Duration WaitEstimator::GainOf(const LiveKey& key) const {
  const api::Starts& starts = in_.starts;
  if (IsUseless(starts, key.key)) {
    return Duration{0};
  }
  const StartKind kind{.key = key.key, .gpu_type = key.factors.gpu_type};
  const double cold = ColdSeconds(starts, kind);
  const double warm = WarmSeconds(starts, kind);
  if (cold <= 0) {
    return kUnknownGain;
  }
  return warm <= 0 ? std::min(kUnknownGain, Seconds(cold)) : Seconds(cold - warm);
}

Duration RemainingTime(const Forecast& forecast, WallTime now) {
  const Duration off = forecast.end >= now ? forecast.end - now : now - forecast.end;
  return std::max(off, kRemainingMin);
}

bool IsWorthWaiting(const HoldCost& cost, const Forecast& forecast, WallTime now) {
  const Duration spent = std::max(now - cost.created, Duration{0});
  const Duration wait = RemainingTime(forecast, now);
  return spent + wait < cost.gain && now + wait <= cost.deadline;
}

WallTime WorthWaitingUntil(const HoldCost& cost, const Forecast& forecast, WallTime now) {
  const WallTime spent = cost.created + cost.gain;
  if (forecast.is_stalled) {
    return std::max(spent - RemainingTime(forecast, now), now);
  }
  // A node that is overdue by x is expected to need x more. At a time t after `forecast.end`,
  // waiting is therefore worthwhile while (t - created) + (t - forecast.end) < gain. This ends
  // halfway between `forecast.end` and `spent`.
  const Duration late = (spent - forecast.end) / 2;
  return std::max(std::min(forecast.end + late, spent - kRemainingMin), now);
}

}  // namespace cachewarm::plan
