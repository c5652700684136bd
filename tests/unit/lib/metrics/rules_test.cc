// SPDX-License-Identifier: Apache-2.0
#include "lib/metrics/rules.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace cachewarm::metrics {
namespace {

using ::testing::HasSubstr;

MetricSpec Spec(const std::string& name) {
  return {.name = name, .help = "h", .labels = {}};
}

TEST(CheckSpec, AcceptsConventionalNames) {
  const std::pair<MetricType, const char*> good[] = {
      {MetricType::kCounter, "cachewarm_pod_starts_total"},
      {MetricType::kCounter, "cachewarm_saved_seconds_total"},
      {MetricType::kCounter, "cachewarm_fetched_bytes_total"},
      {MetricType::kGauge, "cachewarm_warm_generations"},
      {MetricType::kHistogram, "cachewarm_hold_seconds"},
      {MetricType::kHistogram, "cachewarm_bundle_bytes"},
  };
  for (const auto& [type, name] : good) {
    EXPECT_TRUE(CheckSpec(type, Spec(name)).ok()) << name;
  }
}

TEST(CheckSpec, RejectsUnconventionalNames) {
  const std::pair<MetricType, const char*> bad[] = {
      {MetricType::kCounter, ""},
      {MetricType::kCounter, "starts_total"},
      {MetricType::kCounter, "cachewarm_Starts_total"},
      {MetricType::kCounter, "cachewarm-starts-total"},
      {MetricType::kCounter, "cachewarm_starts"},
      {MetricType::kGauge, "cachewarm_starts_total"},
      {MetricType::kHistogram, "cachewarm_hold"},
      {MetricType::kHistogram, "cachewarm_hold_seconds_total"},
      {MetricType::kHistogram, "cachewarm_hold_milliseconds"},
  };
  for (const auto& [type, name] : bad) {
    EXPECT_EQ(CheckSpec(type, Spec(name)).ok(), false) << name;
  }
}

TEST(CheckSpec, RejectsInvalidLabels) {
  MetricSpec spec = Spec("cachewarm_starts_total");
  for (const std::vector<std::string>& labels :
       {std::vector<std::string>{""}, std::vector<std::string>{"le"},
        std::vector<std::string>{"gpu-type"}, std::vector<std::string>{"a", "a"},
        std::vector<std::string>{"1a"}, std::vector<std::string>(9, "a")}) {
    spec.labels = labels;
    EXPECT_FALSE(CheckSpec(MetricType::kCounter, spec).ok());
  }
  spec.labels = {"namespace", "gpu_type"};
  EXPECT_TRUE(CheckSpec(MetricType::kCounter, spec).ok());
}

TEST(CheckSpec, RequiresHelpAndSeriesLimit) {
  MetricSpec spec = Spec("cachewarm_starts_total");
  spec.help = "";
  EXPECT_THAT(std::string(CheckSpec(MetricType::kCounter, spec).message()),
              HasSubstr("cachewarm_starts_total: help"));
  spec = Spec("cachewarm_starts_total");
  spec.series_max = 0;
  EXPECT_FALSE(CheckSpec(MetricType::kCounter, spec).ok());
}

TEST(CheckBuckets, RequiresFiniteAscendingBounds) {
  const MetricSpec spec = Spec("cachewarm_hold_seconds");
  EXPECT_TRUE(CheckBuckets(spec, {1}).ok());
  EXPECT_TRUE(CheckBuckets(spec, SecondsBuckets()).ok());
  EXPECT_TRUE(CheckBuckets(spec, BytesBuckets()).ok());
  EXPECT_FALSE(CheckBuckets(spec, {}).ok());
  EXPECT_FALSE(CheckBuckets(spec, {1, 1}).ok());
  EXPECT_FALSE(CheckBuckets(spec, {2, 1}).ok());
  EXPECT_FALSE(CheckBuckets(spec, {1, std::numeric_limits<double>::infinity()}).ok());
  EXPECT_FALSE(CheckBuckets(spec, {std::nan("")}).ok());
  EXPECT_FALSE(CheckBuckets(spec, std::vector<double>(65, 1)).ok());
}

}  // namespace
}  // namespace cachewarm::metrics
