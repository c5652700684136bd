// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <thread>

#include "lib/metrics/metrics.h"

namespace cachewarm::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RegistryTest : public ::testing::Test {
 protected:
  Counter& Starts(size_t series_max = 2000) {
    return registry_->NewCounter({.name = "cachewarm_pod_starts_total",
                                  .help = "First starts.",
                                  .labels = {"namespace", "warmup", "result"},
                                  .series_max = series_max});
  }

  std::unique_ptr<Registry> registry_ = MakeRegistry();
};

TEST_F(RegistryTest, ServesACounterWithItsLabels) {
  Counter& starts = Starts();
  starts.Add({"ns", "llama", "hit"});
  starts.Add({"ns", "llama", "hit"}, 2);
  const std::string text = registry_->Serialize();
  EXPECT_THAT(text, HasSubstr("# HELP cachewarm_pod_starts_total First starts.\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE cachewarm_pod_starts_total counter\n"));
  EXPECT_THAT(text, HasSubstr("cachewarm_pod_starts_total{namespace=\"ns\",result=\"hit\","
                              "warmup=\"llama\"} 3\n"));
  EXPECT_TRUE(registry_->status().ok());
}

TEST_F(RegistryTest, ExportsUnlabeledMetricFromTheStart) {
  registry_->NewGauge({.name = "cachewarm_warm_generations", .help = "h", .labels = {}});
  EXPECT_THAT(registry_->Serialize(), HasSubstr("\ncachewarm_warm_generations 0\n"));
}

TEST_F(RegistryTest, GaugeGoesUpAndDown) {
  Gauge& gauge = registry_->NewGauge({.name = "cachewarm_queue", .help = "h", .labels = {"name"}});
  gauge.Set({"pods"}, 5);
  gauge.Add({"pods"}, -7);
  EXPECT_THAT(registry_->Serialize(), HasSubstr("cachewarm_queue{name=\"pods\"} -2\n"));
}

TEST_F(RegistryTest, HistogramCountsIntoBuckets) {
  Histogram& hold = registry_->NewHistogram(
      {.name = "cachewarm_hold_seconds", .help = "h", .labels = {"warmup"}}, {1, 10});
  hold.Observe({"a"}, 0.5);
  hold.Observe({"a"}, 5);
  hold.Observe({"a"}, 50);
  const std::string text = registry_->Serialize();
  EXPECT_THAT(text, HasSubstr("cachewarm_hold_seconds_bucket{warmup=\"a\",le=\"1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("cachewarm_hold_seconds_bucket{warmup=\"a\",le=\"10\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("cachewarm_hold_seconds_bucket{warmup=\"a\",le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("cachewarm_hold_seconds_sum{warmup=\"a\"} 55.5\n"));
}

TEST_F(RegistryTest, LabelValuesAreEscaped) {
  Starts().Add({"a\"b\\c\nd", "w", "hit"});
  EXPECT_THAT(registry_->Serialize(), HasSubstr("namespace=\"a\\\"b\\\\c\\nd\""));
}

TEST_F(RegistryTest, IgnoresInvalidValues) {
  Counter& starts = Starts();
  starts.Add({"ns", "w", "hit"}, 1);
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    starts.Add({"ns", "w", "hit"}, bad);
  }
  EXPECT_THAT(registry_->Serialize(), HasSubstr("warmup=\"w\"} 1\n"));
}

TEST_F(RegistryTest, LimitsSeriesAndCountsOverflow) {
  Counter& starts = Starts(/*series_max=*/3);
  for (int i = 0; i < 10; ++i) {
    starts.Add({"ns", std::to_string(i), "hit"});
  }
  starts.Add({"ns", "0", "hit"});
  const std::string text = registry_->Serialize();
  EXPECT_THAT(text, HasSubstr("warmup=\"0\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("warmup=\"2\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("warmup=\"3\"")));
  EXPECT_THAT(text, HasSubstr("{namespace=\"other\",result=\"other\",warmup=\"other\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("cachewarm_metrics_overflow_total{metric=\"cachewarm_pod_starts_"
                              "total\"} 7\n"));
}

TEST_F(RegistryTest, WrongNumberOfLabelsCountsAsOverflow) {
  Starts().Add({"ns"});
  EXPECT_THAT(registry_->Serialize(), HasSubstr("warmup=\"other\"} 1\n"));
}

TEST_F(RegistryTest, CounterIsRaisedToATotalAndNeverLowered) {
  Counter& starts = Starts();
  starts.RaiseTo({"ns", "llama", "hit"}, 0);
  EXPECT_THAT(registry_->Serialize(), HasSubstr("result=\"hit\",warmup=\"llama\"} 0\n"));
  for (const double total : {7.0, 7.0, 3.0, -1.0, std::numeric_limits<double>::infinity()}) {
    starts.RaiseTo({"ns", "llama", "hit"}, total);
    EXPECT_THAT(registry_->Serialize(), HasSubstr("warmup=\"llama\"} 7\n")) << total;
  }
}

TEST_F(RegistryTest, TotalAboveTheLimitOfSeriesIsDropped) {
  Counter& starts = Starts(/*series_max=*/1);
  starts.RaiseTo({"ns", "llama", "hit"}, 5);
  starts.RaiseTo({"ns", "mistral", "hit"}, 9);
  starts.RaiseTo({"ns"}, 9);
  const std::string text = registry_->Serialize();
  EXPECT_THAT(text, HasSubstr("warmup=\"llama\"} 5\n"));
  EXPECT_THAT(text, Not(HasSubstr("mistral")));
  EXPECT_THAT(text, Not(HasSubstr("warmup=\"other\"")));
  EXPECT_THAT(text, HasSubstr("cachewarm_metrics_overflow_total{metric=\"cachewarm_pod_starts_"
                              "total\"} 2\n"));
}

TEST_F(RegistryTest, RemovesMatchingSeries) {
  Counter& starts = Starts();
  starts.Add({"a", "x", "hit"});
  starts.Add({"a", "y", "hit"});
  starts.Add({"b", "x", "miss"});
  starts.Remove({{"namespace", "a"}, {"warmup", "x"}});
  std::string text = registry_->Serialize();
  EXPECT_THAT(text, Not(HasSubstr("namespace=\"a\",result=\"hit\",warmup=\"x\"")));
  EXPECT_THAT(text, HasSubstr("warmup=\"y\""));
  EXPECT_THAT(text, HasSubstr("namespace=\"b\""));
  starts.Remove({{"no_such_label", "x"}});
  EXPECT_EQ(registry_->Serialize(), text);
  starts.Add({"a", "x", "hit"});
  EXPECT_THAT(registry_->Serialize(),
              HasSubstr("{namespace=\"a\",result=\"hit\",warmup=\"x\"} 1\n"))
      << "a new series starts at 0";
}

TEST_F(RegistryTest, RemovedSeriesFreeTheLimit) {
  Counter& starts = Starts(/*series_max=*/1);
  starts.Add({"a", "x", "hit"});
  starts.Remove({});
  starts.Add({"b", "x", "hit"});
  EXPECT_THAT(registry_->Serialize(), HasSubstr("namespace=\"b\""));
}

TEST_F(RegistryTest, SerializedTextIsStable) {
  Counter& starts = Starts();
  for (int i = 99; i >= 0; --i) {
    starts.Add({"ns", std::to_string(i), "hit"});
  }
  registry_->NewGauge({.name = "cachewarm_a", .help = "h", .labels = {}});
  const std::string text = registry_->Serialize();
  EXPECT_EQ(text, registry_->Serialize());
  EXPECT_LT(text.find("cachewarm_a "), text.find("cachewarm_pod_starts_total"));
}

TEST_F(RegistryTest, ReportsInvalidSpecAndDoesNotServeIt) {
  Counter& bad = registry_->NewCounter({.name = "cachewarm_bad", .help = "h", .labels = {"x"}});
  bad.Add({"y"});
  bad.Remove({});
  EXPECT_TRUE(absl::IsInvalidArgument(registry_->status()));
  EXPECT_THAT(std::string(registry_->status().message()), HasSubstr("cachewarm_bad"));
  EXPECT_THAT(registry_->Serialize(), Not(HasSubstr("cachewarm_bad")));
  EXPECT_THAT(registry_->Serialize(), Not(HasSubstr("refused")));
}

TEST_F(RegistryTest, ReportsInvalidBucketsAndDuplicateNames) {
  registry_->NewHistogram({.name = "cachewarm_x_seconds", .help = "h", .labels = {}}, {2, 1})
      .Observe({}, 1);
  EXPECT_FALSE(registry_->status().ok());
  registry_ = MakeRegistry();
  Starts();
  EXPECT_TRUE(registry_->status().ok());
  Starts().Add({"a", "b", "c"});
  EXPECT_THAT(std::string(registry_->status().message()), HasSubstr("declared twice"));
}

TEST_F(RegistryTest, CountsFromManyThreads) {
  Counter& starts = Starts(/*series_max=*/50);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&starts, this] {
        for (int i = 0; i < 1000; ++i) {
          starts.Add({"ns", "w", "hit"});
          starts.Add({"ns", std::to_string(i), "miss"});
          if (i % 100 == 0) {
            starts.Remove({{"result", "miss"}});
            registry_->Serialize();
          }
        }
      });
    }
  }
  EXPECT_THAT(registry_->Serialize(),
              HasSubstr("{namespace=\"ns\",result=\"hit\",warmup=\"w\"} 4000\n"));
}

TEST(Buckets, CoverMeasuredRanges) {
  EXPECT_LE(SecondsBuckets().front(), 0.005);
  EXPECT_GE(SecondsBuckets().back(), 1800);
  EXPECT_EQ(BytesBuckets().front(), 65'536);
  EXPECT_EQ(BytesBuckets().back(), 17'179'869'184.0);
}

}  // namespace
}  // namespace cachewarm::metrics
