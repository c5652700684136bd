// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/storm_limiter.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace cachewarm::observe {
namespace {

constexpr double kPlansPerSecond = 1;
// A bucket is full after this time, and a full one need not be kept.
constexpr Duration kFullAfter{static_cast<int64_t>(StormLimiter::kPlansMax / kPlansPerSecond) *
                              1'000};

double Seconds(MonoTime::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Duration StormLimiter::DelayFor(const std::string& warmup, MonoTime now) {
  if (now - pruned_ >= kFullAfter) {
    std::erase_if(buckets_,
                  [&](const auto& each) { return now - each.second.filled >= kFullAfter; });
    pruned_ = now;
  }
  const auto [at, is_new] = buckets_.try_emplace(warmup);
  Bucket& bucket = at->second;
  if (!is_new && now - bucket.counted < bucket.delay) {
    return bucket.delay;  // covered by the same plan
  }
  if (!is_new) {
    bucket.plans =
        std::min(kPlansMax, bucket.plans + kPlansPerSecond * Seconds(now - bucket.filled));
  }
  bucket.filled = now;
  bucket.counted = now;
  bucket.delay = bucket.plans >= 1 ? kPodBurst : kStormDelay;
  bucket.plans = std::max(0.0, bucket.plans - 1);
  return bucket.delay;
}

}  // namespace cachewarm::observe
