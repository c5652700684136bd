// SPDX-License-Identifier: Apache-2.0
#include "lib/api/engine_starts.h"

#include <gtest/gtest.h>

namespace cachewarm::api {
namespace {

StartSample Sample(StartResult result, double compile, int64_t tokens,
                   const std::string& gpu_type = "cpu", EngineLog log = EngineLog::kFound) {
  StartSample sample{.gpu_type = gpu_type, .result = result};
  sample.engine = EngineStart{.log = log, .compile_seconds = compile, .kv_cache_tokens = tokens};
  return sample;
}

TEST(EngineStarts, ColdAndWarmStartsAreComparedPerGpuType) {
  StartSample unread{.gpu_type = "l4", .result = StartResult::kHit};
  const std::vector<EngineComparison> found = CompareEngineStarts(
      {Sample(StartResult::kCold, 30, 100, "h100"), Sample(StartResult::kCold, 40, 101, "h100"),
       Sample(StartResult::kHit, 5, 120, "h100"),
       Sample(StartResult::kHit, 0, 0, "a100", EngineLog::kNothingFound),
       Sample(StartResult::kHit, 9, 50, "a10"), Sample(StartResult::kMiss, 9, 50, "b200"), unread});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].gpu_type, "a10");
  EXPECT_EQ(found[0].cold.starts, 0);
  EXPECT_EQ(found[0].warm.start.compile_seconds, 9);
  EXPECT_EQ(found[1].gpu_type, "h100");
  EXPECT_EQ(found[1].cold.starts, 2);
  EXPECT_EQ(found[1].cold.start.compile_seconds, 35);
  EXPECT_EQ(found[1].cold.start.kv_cache_tokens, 100);
  EXPECT_EQ(found[1].warm.start.kv_cache_tokens, 120);
}

TEST(EngineStarts, BuildersAndPartialHitsCountOnlyWithoutColdStartsAndHits) {
  std::vector<StartSample> recent = {Sample(StartResult::kBuilder, 60, 90),
                                     Sample(StartResult::kPartial, 20, 110)};
  EXPECT_EQ(CompareEngineStarts(recent)[0].cold.start.compile_seconds, 60);
  EXPECT_EQ(CompareEngineStarts(recent)[0].warm.start.compile_seconds, 20);
  recent.push_back(Sample(StartResult::kCold, 50, 95));
  recent.push_back(Sample(StartResult::kHit, 4, 120));
  EXPECT_EQ(CompareEngineStarts(recent)[0].cold.start.compile_seconds, 50);
  EXPECT_EQ(CompareEngineStarts(recent)[0].warm.start.compile_seconds, 4);
}

TEST(EngineStarts, MedianIgnoresStartsThatDoNotReportTheNumber) {
  std::vector<StartSample> recent = {
      Sample(StartResult::kHit, 0, 300), Sample(StartResult::kHit, 7, 0),
      Sample(StartResult::kHit, 9, 100), Sample(StartResult::kHit, 2, 200)};
  const EngineMedians warm = CompareEngineStarts(recent)[0].warm;
  EXPECT_EQ(warm.starts, 4);
  EXPECT_EQ(warm.start.compile_seconds, 7);
  EXPECT_EQ(warm.start.weights_seconds, 0);
  EXPECT_EQ(MedianKvCacheTokens(recent, "cpu", StartResult::kHit), 200);
  EXPECT_EQ(MedianKvCacheTokens(recent, "cpu", StartResult::kCold), 0);
  EXPECT_EQ(MedianKvCacheTokens(recent, "l4", StartResult::kHit), 0);
}

TEST(EngineStarts, EveryPhaseHasANameAndItsSeconds) {
  const EngineStart start{
      .weights_seconds = 1, .compile_seconds = 2, .graph_capture_seconds = 3, .init_seconds = 4};
  std::string text;
  for (const EnginePhase phase : kEnginePhases) {
    text += std::string(Name(phase)) + "=" +
            std::to_string(static_cast<int>(SecondsOf(start, phase))) + " ";
  }
  EXPECT_EQ(text, "weights=1 compile=2 graph_capture=3 init=4 ");
}

}  // namespace
}  // namespace cachewarm::api
