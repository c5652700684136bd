// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/capturing/settle.h"

#include <gtest/gtest.h>

#include <chrono>

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

constexpr Duration kQuiet(10'000);

MonoTime At(int second) {
  return MonoTime(seconds(1000 + second));
}

TEST(Settle, SampleHasCountBytesAndNewestMtime) {
  const auto file = [](int64_t bytes, int64_t mtime_ns) {
    capture::TreeFile each;
    each.stat.bytes = bytes;
    each.stat.mtime_ns = mtime_ns;
    return each;
  };
  EXPECT_EQ(SampleOf({}), SettleSample());
  EXPECT_EQ(SampleOf({file(3, 70), file(4, 90), file(0, 80)}), (SettleSample{3, 7, 90}));
}

TEST(Settle, WaitsForTheWholeQuietTime) {
  Settle settle;
  const SettleSample sample{3, 100, 5};
  EXPECT_FALSE(settle.Observe(sample, At(0), kQuiet));
  EXPECT_FALSE(settle.Observe(sample, At(9), kQuiet));
  EXPECT_TRUE(settle.Observe(sample, At(10), kQuiet));
}

TEST(Settle, AnyChangeRestartsQuietTime) {
  const SettleSample base{3, 100, 5};
  for (const SettleSample& changed :
       {SettleSample{4, 100, 5}, SettleSample{3, 101, 5}, SettleSample{3, 100, 6}}) {
    Settle settle;
    EXPECT_FALSE(settle.Observe(base, At(0), kQuiet));
    EXPECT_FALSE(settle.Observe(changed, At(9), kQuiet));
    EXPECT_FALSE(settle.Observe(changed, At(18), kQuiet));
    EXPECT_TRUE(settle.Observe(changed, At(19), kQuiet));
  }
}

TEST(Settle, RevertedChangeRestartsQuietTime) {
  Settle settle;
  EXPECT_FALSE(settle.Observe({3, 100, 5}, At(0), kQuiet));
  EXPECT_FALSE(settle.Observe({4, 120, 6}, At(5), kQuiet));
  EXPECT_FALSE(settle.Observe({3, 100, 5}, At(10), kQuiet));
}

TEST(Settle, EmptyTreeNeverSettles) {
  Settle settle;
  EXPECT_FALSE(settle.Observe({}, At(0), kQuiet));
  EXPECT_FALSE(settle.Observe({}, At(100), kQuiet));
}

TEST(Settle, ZeroQuietTimeSettlesWithFirstFile) {
  Settle settle;
  EXPECT_TRUE(settle.Observe({1, 1, 1}, At(0), Duration(0)));
}

TEST(Settle, RestartDropsSamples) {
  Settle settle;
  const SettleSample sample{3, 100, 5};
  EXPECT_FALSE(settle.Observe(sample, At(0), kQuiet));
  settle.Restart();
  EXPECT_FALSE(settle.Observe(sample, At(10), kQuiet));
  EXPECT_TRUE(settle.Observe(sample, At(20), kQuiet));
}

}  // namespace
}  // namespace cachewarm::agent
