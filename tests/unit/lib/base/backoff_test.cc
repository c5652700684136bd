// SPDX-License-Identifier: Apache-2.0
#include "lib/base/backoff.h"

#include <gtest/gtest.h>

#include <climits>

#include "lib/base/random.h"

namespace cachewarm {
namespace {

constexpr BackoffPolicy kExact{
    .first = Duration(100), .most = Duration(1000), .factor = 2, .jitter = 0};

TEST(BackoffDelay, DoublesUntilItsLimit) {
  const int64_t expected[] = {100, 200, 400, 800, 1000, 1000};
  for (int attempt = 0; attempt < 6; ++attempt) {
    EXPECT_EQ(BackoffDelay(kExact, attempt, 0.7).count(), expected[attempt]) << attempt;
  }
}

TEST(BackoffDelay, AcceptsAnyNumberOfFailures) {
  EXPECT_EQ(BackoffDelay(kExact, INT_MAX, 0).count(), 1000);
  EXPECT_EQ(BackoffDelay(kExact, -5, 0).count(), 100);
  const BackoffPolicy steep{
      .first = Duration(1), .most = Duration(1 << 30), .factor = 1e6, .jitter = 0};
  EXPECT_EQ(BackoffDelay(steep, INT_MAX, 0).count(), 1 << 30);
}

TEST(BackoffDelay, JitterOnlyShortens) {
  const BackoffPolicy policy{
      .first = Duration(1000), .most = Duration(10'000), .factor = 2, .jitter = 0.5};
  EXPECT_EQ(BackoffDelay(policy, 0, 0).count(), 1000);
  EXPECT_EQ(BackoffDelay(policy, 0, 0.5).count(), 750);
  for (double random = 0; random < 1; random += 0.01) {
    const int64_t delay = BackoffDelay(policy, 3, random).count();
    EXPECT_GE(delay, 4000);
    EXPECT_LE(delay, 8000);
  }
}

TEST(BackoffDelay, FactorOneKeepsTheDelayConstant) {
  const BackoffPolicy policy{
      .first = Duration(700), .most = Duration(10'000), .factor = 1, .jitter = 0};
  EXPECT_EQ(BackoffDelay(policy, 50, 0).count(), 700);
}

TEST(SystemRandom, StaysBelowOneAndVaries) {
  const Random random = SystemRandom();
  double least = 1;
  double most = 0;
  for (int i = 0; i < 1000; ++i) {
    const double value = random();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_LT(least, 0.5);
  EXPECT_GT(most, 0.5);
}

}  // namespace
}  // namespace cachewarm
