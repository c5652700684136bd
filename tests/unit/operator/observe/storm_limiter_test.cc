// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/storm_limiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

namespace cachewarm::observe {
namespace {

using std::chrono::seconds;

class StormLimiterTest : public ::testing::Test {
 protected:
  // Changes pods of `warmup` once per `interval` and returns the number of plans. As in a work
  // queue, a plan that is due covers all changes before it.
  int Plans(const std::string& warmup, Duration interval, int changes) {
    int plans = 0;
    std::optional<MonoTime> due;
    for (int i = 0; i < changes; ++i) {
      now += interval;
      if (due.has_value() && now >= *due) {
        ++plans;
        due.reset();
      }
      const MonoTime next = now + limiter.DelayFor(warmup, now);
      due = std::min(due.value_or(next), next);
    }
    return plans + (due.has_value() ? 1 : 0);
  }

  StormLimiter limiter;
  MonoTime now{};
};

TEST_F(StormLimiterTest, TenThousandUpdatesInAMinuteAreCoveredByFewPlans) {
  EXPECT_LE(Plans("default/llama", Duration(6), 10'000), 620);
  EXPECT_LE(Plans("default/llama", Duration(6), 10'000), 125) << "in each further minute";
}

TEST_F(StormLimiterTest, StormOfOneWarmupDelaysNoOther) {
  Plans("default/llama", Duration(6), 10'000);
  EXPECT_EQ(limiter.DelayFor("default/llama", now + seconds(2)), StormLimiter::kPodBurst)
      << "one plan per second";
  EXPECT_EQ(limiter.DelayFor("default/mistral", now), StormLimiter::kPodBurst);
}

TEST_F(StormLimiterTest, RolloutOfHundredsOfPodsIsNotDelayed) {
  for (int i = 0; i < 400; ++i) {
    now += StormLimiter::kPodBurst;
    EXPECT_EQ(limiter.DelayFor("default/llama", now), StormLimiter::kPodBurst);
  }
}

TEST_F(StormLimiterTest, BucketFillsAgain) {
  Plans("default/llama", Duration(6), 10'000);
  now += seconds(500);
  for (int i = 0; i < 400; ++i) {
    now += StormLimiter::kPodBurst;
    EXPECT_EQ(limiter.DelayFor("default/llama", now), StormLimiter::kPodBurst);
  }
}

}  // namespace
}  // namespace cachewarm::observe
