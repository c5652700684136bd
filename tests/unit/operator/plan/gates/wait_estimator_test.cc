// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/gates/wait_estimator.h"

#include <gtest/gtest.h>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using std::chrono::seconds;

struct WorthCase {
  const char* name;
  int created;
  int deadline;
  int gain;
  Forecast forecast;
  bool pays;
};

class WorthWaiting : public testing::TestWithParam<WorthCase> {};

TEST_P(WorthWaiting, CountsTimeAlreadyHeldAndEndsAtReturnedTime) {
  const WorthCase& each = GetParam();
  const HoldCost cost{
      .created = At(each.created), .deadline = At(each.deadline), .gain = seconds(each.gain)};
  const WallTime now = At(100);
  ASSERT_EQ(IsWorthWaiting(cost, each.forecast, now), each.pays);
  if (!each.pays) {
    return;
  }
  const auto at = [&](WallTime when) {  // a stalled forecast moves with the clock
    Forecast forecast = each.forecast;
    forecast.end += forecast.is_stalled ? when - now : Duration{0};
    return IsWorthWaiting(cost, forecast, when);
  };
  const WallTime until = WorthWaitingUntil(cost, each.forecast, now);
  EXPECT_TRUE(at(std::min(until, cost.deadline - seconds(1)) - std::chrono::milliseconds(1500)));
  EXPECT_FALSE(at(until + std::chrono::milliseconds(1)));
}

INSTANTIATE_TEST_SUITE_P(
    All, WorthWaiting,
    testing::Values(WorthCase{"new_and_near", 100, 160, 20, {At(105), false}, true},
                    WorthCase{"moving", 100, 160, 20, {At(105), true}, true},
                    WorthCase{"held_for_long", 84, 160, 20, {At(105), false}, false},
                    WorthCase{"late_by_little", 95, 160, 20, {At(98), false}, true},
                    WorthCase{"late_by_much", 95, 160, 20, {At(80), false}, false},
                    WorthCase{"after_the_deadline", 100, 103, 20, {At(105), false}, false},
                    WorthCase{"created_in_the_future", 101, 160, 20, {At(105), false}, true},
                    WorthCase{"no_gain", 100, 160, 0, {At(100), false}, false}),
    [](const auto& each) { return each.param.name; });

class EstimatorTest : public testing::Test {
 protected:
  EstimatorTest() {
    builder_.Node({.name = "n1"});
    builder_.Node({.name = "n2"});
    builder_.Accepted();
    key_.key = builder_.Key("n1");
    key_.factors.gpu_type = "cpu";
  }

  void Start(api::StartResult result, double start_seconds, const std::string& key = "") {
    builder_.status().starts.recent.push_back({.key = key.empty() ? key_.key : key,
                                               .gpu_type = "cpu",
                                               .result = result,
                                               .start_seconds = start_seconds});
  }

  // Calls `ask` with an estimator of the present state.
  template <typename Ask>
  auto Estimate(const Ask& ask) {
    const Observed observed = Observe(builder_.in());
    const Context context(builder_.in(), observed);
    const Bundles bundles(context);
    return ask(WaitEstimator({.context = context,
                              .bundles = bundles,
                              .builders = builder_.status().builders,
                              .starts = builder_.status().starts}));
  }

  Duration Gain() {
    return Estimate([this](const WaitEstimator& estimator) { return estimator.GainOf(key_); });
  }

  Forecast FetchTo(const std::string& node, int slots_before) {
    return Estimate([&](const WaitEstimator& estimator) {
      return estimator.ForecastFetch({.view = &builder_.view(node)}, builder_.status().bundles[0],
                                     slots_before);
    });
  }

  fakes::SnapshotBuilder builder_;
  LiveKey key_;
};

TEST_F(EstimatorTest, UnknownGainIsThirtySeconds) {
  EXPECT_EQ(Gain(), seconds(30));
}

TEST_F(EstimatorTest, GainIsDifferenceOfMedians) {
  for (const double cold : {50, 60, 70}) {
    Start(api::StartResult::kCold, cold);
  }
  Start(api::StartResult::kHit, 20);
  EXPECT_EQ(Gain(), seconds(40));
}

TEST_F(EstimatorTest, BuilderStartReplacesColdStarts) {
  Start(api::StartResult::kBuilder, 60);
  Start(api::StartResult::kHit, 20);
  EXPECT_EQ(Gain(), seconds(40));
}

TEST_F(EstimatorTest, OtherKeysOfGpuTypeReplaceMissingMeasurements) {
  Start(api::StartResult::kCold, 60, "other");
  Start(api::StartResult::kHit, 20, "other");
  EXPECT_EQ(Gain(), seconds(40));
  Start(api::StartResult::kCold, 25);
  EXPECT_EQ(Gain(), seconds(5));
}

TEST_F(EstimatorTest, GainIsAtMostAColdStart) {
  Start(api::StartResult::kCold, 12);
  EXPECT_EQ(Gain(), seconds(12));
}

TEST_F(EstimatorTest, UnusedBundleHasNoGain) {
  Start(api::StartResult::kCold, 60);
  Start(api::StartResult::kInert, 60);
  EXPECT_EQ(Gain(), seconds(0));
  Start(api::StartResult::kHit, 20);
  EXPECT_EQ(Gain(), seconds(40));
}

TEST_F(EstimatorTest, FetchForecastUsesOtherFetches) {
  builder_.Bundle({.node = "n1", .active = {"n1"}});
  builder_.reported("n1").bundles[0].fetch_seconds = 4;
  const Forecast forecast = FetchTo("n2", 0);
  EXPECT_EQ(forecast.end, At(105)) << "4 s and one to activate it";
  EXPECT_TRUE(forecast.is_stalled);
  EXPECT_EQ(FetchTo("n2", 2).end, At(115)) << "two slots of others, as long as its own";
}

}  // namespace
}  // namespace cachewarm::plan
