// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/totals.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cachewarm::plan {
namespace {

using api::StartResult;

api::StartSample Sample(const std::string& gpu_type, StartResult result, double saved = 0) {
  return {.pod_uid = "u", .gpu_type = gpu_type, .result = result, .saved_seconds = saved};
}

TEST(Totals, AreThoseOfAllStartsAndOfEachGpuType) {
  api::Starts starts;
  AddToTotals(starts, Sample("cpu", StartResult::kHit, 20.5));
  AddToTotals(starts, Sample("nvidia/l4/sm_89", StartResult::kHit, 4));
  AddToTotals(starts, Sample("cpu", StartResult::kMiss, -3));
  EXPECT_EQ(starts.counts, (api::StartCounts{.hit = 2, .miss = 1}));
  EXPECT_DOUBLE_EQ(starts.saved_seconds, 24.5);
  EXPECT_DOUBLE_EQ(starts.lost_seconds, 3);
  EXPECT_EQ(starts.gpu_types,
            (std::vector<api::GpuTypeStarts>{
                {.gpu_type = "cpu",
                 .counts = {.hit = 1, .miss = 1},
                 .saved_seconds = 20.5,
                 .lost_seconds = 3},
                {.gpu_type = "nvidia/l4/sm_89", .counts = {.hit = 1}, .saved_seconds = 4}}));
}

TEST(Totals, OfGpuSecondsCountEachDeviceOfThePod) {
  api::Starts starts;
  const auto add = [&](int devices, double saved) {
    api::StartSample sample = Sample("nvidia/l4/sm_89", StartResult::kHit, saved);
    sample.devices = devices;
    AddToTotals(starts, sample);
  };
  add(8, 20.5);
  add(1, 2);
  add(0, 1000);
  add(4, -3);
  const api::GpuTypeStarts& type = TotalsOf(starts, "nvidia/l4/sm_89");
  EXPECT_DOUBLE_EQ(type.saved_gpu_seconds, 166);
  EXPECT_DOUBLE_EQ(type.lost_gpu_seconds, 12);
}

TEST(Totals, OfAnUnknownGpuTypeHaveANameOfTheirOwn) {
  api::Starts starts;
  AddToTotals(starts, Sample("", StartResult::kCold));
  ASSERT_EQ(starts.gpu_types.size(), 1U);
  EXPECT_EQ(starts.gpu_types[0].gpu_type, "unknown");
}

TEST(Totals, OfTypesAboveTheLimitAreJoined) {
  api::Starts starts;
  for (int i = 0; i < 100; ++i) {
    AddToTotals(starts, Sample("type-" + std::to_string(i), StartResult::kHit, 1));
  }
  AddToTotals(starts, Sample("type-0", StartResult::kHit, 1));
  ASSERT_EQ(starts.gpu_types.size(), api::kGpuTypeStartsMax);
  EXPECT_TRUE(std::is_sorted(starts.gpu_types.begin(), starts.gpu_types.end(),
                             [](const auto& a, const auto& b) { return a.gpu_type < b.gpu_type; }));
  EXPECT_EQ(TotalsOf(starts, "type-0").counts.hit, 2);
  EXPECT_EQ(TotalsOf(starts, "other").counts.hit, 100 - 31);
  EXPECT_EQ(starts.counts.hit, 101);
}

TEST(Totals, OfEveryResultCanBeRead) {
  for (const StartResult result : api::kStartResults) {
    api::Starts starts;
    AddToTotals(starts, Sample("cpu", result));
    int64_t all = 0;
    for (const StartResult other : api::kStartResults) {
      all += CountOf(starts.counts, other);
    }
    EXPECT_EQ(CountOf(starts.counts, result), 1);
    EXPECT_EQ(all, 1);
  }
}

}  // namespace
}  // namespace cachewarm::plan
