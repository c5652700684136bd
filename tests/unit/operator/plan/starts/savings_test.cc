// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/savings.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cachewarm::plan {
namespace {

using api::StartResult;
using api::StartSample;

StartSample Sample(StartResult result, double start, double hold = 0, double compiled_after = 0) {
  return {.pod_uid = "u",
          .key = "k",
          .gpu_type = "cpu",
          .result = result,
          .start_seconds = start,
          .hold_seconds = hold,
          .compiled_after_seconds = compiled_after};
}

api::WarmupStatus With(const std::vector<StartSample>& samples) {
  api::WarmupStatus status;
  for (const StartSample& sample : samples) {
    AddSample(status.starts, sample);
  }
  return status;
}

struct NetCase {
  const char* name;
  StartResult result;
  double start;
  double hold;
  double saved;  // against a cold start of 40 s that compiled its last file after 30 s
};

class NetSavings : public testing::TestWithParam<NetCase> {};

TEST_P(NetSavings, EqualsColdMedianMinusHoldAndStartUpToLastCompiledFile) {
  const api::WarmupStatus status = With({Sample(StartResult::kCold, 40, 0, 30)});
  EXPECT_DOUBLE_EQ(NetSavedSeconds(status.starts, status.bundles,
                                   Sample(GetParam().result, GetParam().start, GetParam().hold)),
                   GetParam().saved);
}

INSTANTIATE_TEST_SUITE_P(All, NetSavings,
                         testing::Values(NetCase{"hit", StartResult::kHit, 15, 2, 23},
                                         NetCase{"hit_capped", StartResult::kHit, 5, 0, 30},
                                         NetCase{"hit_that_cost", StartResult::kHit, 39, 6, -5},
                                         NetCase{"partial", StartResult::kPartial, 25, 0, 15},
                                         NetCase{"hollow", StartResult::kHollow, 30, 0, 10},
                                         NetCase{"miss_never_saves", StartResult::kMiss, 20, 0, 0},
                                         NetCase{"miss_costs", StartResult::kMiss, 39, 4, -3},
                                         NetCase{"inert", StartResult::kInert, 41, 0, -1},
                                         NetCase{"cold", StartResult::kCold, 20, 0, 0},
                                         NetCase{"cold_held", StartResult::kCold, 20, 9, -9},
                                         NetCase{"unknown_held", StartResult::kUnknown, 20, 3, -3},
                                         NetCase{"builder", StartResult::kBuilder, 50, 3, 0},
                                         NetCase{"no_probe", StartResult::kHit, 0, 2, -2}),
                         [](const auto& each) { return each.param.name; });

TEST(Savings, NoSavingsWithoutColdStart) {
  EXPECT_DOUBLE_EQ(NetSavedSeconds({}, {}, Sample(StartResult::kHit, 5, 3)), -3);
}

TEST(Savings, NoSavingsWithoutCompile) {
  const api::WarmupStatus status = With({Sample(StartResult::kCold, 40)});
  EXPECT_DOUBLE_EQ(NetSavedSeconds(status.starts, status.bundles, Sample(StartResult::kHit, 5)), 0);
}

TEST(Savings, BuilderStartIsBaselineWithoutColdStart) {
  const api::WarmupStatus status = With({Sample(StartResult::kBuilder, 50, 0, 30)});
  EXPECT_DOUBLE_EQ(NetSavedSeconds(status.starts, status.bundles, Sample(StartResult::kHit, 25)),
                   25);
}

TEST(Savings, ColdStartsOfOtherGpuTypesAreNoBaseline) {
  StartSample slow = Sample(StartResult::kCold, 400, 0, 300);
  slow.gpu_type = "nvidia/a100/sm_80";
  const api::WarmupStatus status = With({slow, Sample(StartResult::kCold, 40, 0, 30)});
  EXPECT_DOUBLE_EQ(NetSavedSeconds(status.starts, status.bundles, Sample(StartResult::kHit, 20)),
                   20);
}

// Measured with JAX 0.10.2: one file, written 1 ms before the pod is ready. Its compile span is 0.
TEST(Savings, EngineThatWritesOneFileAtTheEndSavesTheWholeDifference) {
  const api::WarmupStatus status = With({Sample(StartResult::kBuilder, 6, 0, 5.9)});
  EXPECT_DOUBLE_EQ(NetSavedSeconds(status.starts, status.bundles, Sample(StartResult::kHit, 3)), 3);
}

TEST(Savings, MedianOfLastCompiledFilesOfTheKeyCapsSavings) {
  StartSample other = Sample(StartResult::kCold, 40, 0, 39);
  other.key = "other";
  const api::WarmupStatus status =
      With({Sample(StartResult::kBuilder, 40, 0, 12), Sample(StartResult::kCold, 40, 0, 30),
            Sample(StartResult::kCold, 40, 0, 14), Sample(StartResult::kCold, 40),
            Sample(StartResult::kPartial, 40, 0, 2), other});
  EXPECT_DOUBLE_EQ(NetSavedSeconds(status.starts, status.bundles, Sample(StartResult::kHit, 5)),
                   14);
}

TEST(Savings, StartWithoutKeyHasNoCap) {
  StartSample cold = Sample(StartResult::kCold, 40, 0, 30);
  cold.key = "";
  StartSample hit = Sample(StartResult::kHit, 5);
  hit.key = "";
  const api::WarmupStatus status = With({cold});
  EXPECT_DOUBLE_EQ(NetSavedSeconds(status.starts, status.bundles, hit), 0);
}

TEST(Savings, BundleCompileSecondsCapSavingsWithoutObservedStart) {
  api::WarmupStatus status = With({Sample(StartResult::kCold, 40)});
  status.bundles = {{.key = "k", .gpu_type = "cpu", .compile_seconds = 12}};
  EXPECT_DOUBLE_EQ(NetSavedSeconds(status.starts, status.bundles, Sample(StartResult::kHit, 5)),
                   12);
}

TEST(Savings, OnlyBundlesThatServeTheKeyCapSavings) {
  api::WarmupStatus status = With({Sample(StartResult::kCold, 40)});
  status.bundles = {
      {.key = "a", .gpu_type = "cpu", .native = true, .compile_seconds = 30},
      {.key = "b", .gpu_type = "nvidia/a100/sm_80", .native = false, .compile_seconds = 25},
      {.key = "c", .gpu_type = "cpu", .native = false, .compile_seconds = 12}};
  EXPECT_DOUBLE_EQ(NetSavedSeconds(status.starts, status.bundles, Sample(StartResult::kHit, 5)),
                   12);
}

TEST(Savings, MediansTakeTheMiddle) {
  const api::WarmupStatus status =
      With({Sample(StartResult::kCold, 30), Sample(StartResult::kCold, 50),
            Sample(StartResult::kHit, 4, 1), Sample(StartResult::kHit, 6, 3),
            Sample(StartResult::kHit, 11, 2)});
  EXPECT_DOUBLE_EQ(status.starts.cold_median_seconds, 40);
  EXPECT_DOUBLE_EQ(status.starts.warm_median_seconds, 6);
  EXPECT_DOUBLE_EQ(status.starts.hold_median_seconds, 1);
}

TEST(Savings, ColdBaselineOutlivesWarmStarts) {
  api::WarmupStatus status = With({Sample(StartResult::kCold, 40, 0, 30)});
  for (int i = 0; i < 1000; ++i) {
    AddSample(status.starts, Sample(StartResult::kHit, 5));
  }
  EXPECT_EQ(status.starts.recent.size(), 64U);
  EXPECT_EQ(status.starts.counts.hit, 1000);
  EXPECT_DOUBLE_EQ(status.starts.cold_median_seconds, 40);
  EXPECT_DOUBLE_EQ(NetSavedSeconds(status.starts, status.bundles, Sample(StartResult::kHit, 15)),
                   25);
}

TEST(Savings, NewColdStartsReplaceOldOnes) {
  api::WarmupStatus status;
  for (int i = 0; i < 100; ++i) {
    AddSample(status.starts, Sample(StartResult::kCold, 100 + i));
  }
  EXPECT_EQ(status.starts.recent.size(), 64U);
  EXPECT_EQ(status.starts.recent.back().start_seconds, 199);
  for (int i = 0; i < 100; ++i) {
    AddSample(status.starts, Sample(StartResult::kHit, 5));
  }
  const auto cold =
      std::count_if(status.starts.recent.begin(), status.starts.recent.end(),
                    [](const StartSample& each) { return each.result == StartResult::kCold; });
  EXPECT_EQ(cold, 16);
}

TEST(Savings, GainsAndLossesAreSummedSeparately) {
  api::Starts starts;
  StartSample gain = Sample(StartResult::kHit, 5);
  gain.saved_seconds = 20;
  StartSample loss = Sample(StartResult::kHit, 5);
  loss.saved_seconds = -3;
  AddSample(starts, gain);
  AddSample(starts, loss);
  StartSample small = Sample(StartResult::kHit, 5);
  small.saved_seconds = 0.5;
  AddSample(starts, small);
  EXPECT_DOUBLE_EQ(starts.saved_seconds, 20.5);
  EXPECT_DOUBLE_EQ(starts.lost_seconds, 3);
}

TEST(Savings, ZeroIsNeverNegative) {
  for (const StartResult result : {StartResult::kHit, StartResult::kCold, StartResult::kUnknown}) {
    StartSample sample = Sample(result, 0);
    sample.saved_seconds = NetSavedSeconds({}, {}, sample);
    EXPECT_FALSE(std::signbit(sample.saved_seconds));
    EXPECT_EQ(DescribeSample(sample, "").find("-0"), std::string::npos);
    EXPECT_FALSE(std::signbit(With({sample}).starts.lost_seconds));
  }
}

TEST(Savings, SkippedPodAnnotationHasReason) {
  const StartSample sample = Sample(StartResult::kCold, 2);
  EXPECT_EQ(DescribeSample(sample, "").find("skipReason"), std::string::npos);
  EXPECT_NE(DescribeSample(sample, "it is odd").find(R"("skipReason":"it is odd")"),
            std::string::npos);
}

struct ShareCase {
  api::StartCounts counts;
  const char* hit;
  const char* partial;
};

TEST(Savings, SharesExcludeBuildersAndUnknown) {
  const ShareCase cases[] = {
      {{}, "", ""},
      {{.builder = 3, .unknown = 2}, "", ""},
      {{.builder = 1, .cold = 1, .hit = 5}, "83%", "0%"},
      {{.hit = 7, .unknown = 9}, "100%", "0%"},
      {{.cold = 1, .partial = 9, .unknown = 4}, "0%", "90%"},
      {{.hit = 2, .partial = 1, .miss = 1, .inert = 1, .hollow = 1}, "33%", "16%"},
  };
  for (const ShareCase& each : cases) {
    EXPECT_EQ(ShareOf(each.counts, StartResult::kHit), each.hit);
    EXPECT_EQ(ShareOf(each.counts, StartResult::kPartial), each.partial);
  }
}

}  // namespace
}  // namespace cachewarm::plan
