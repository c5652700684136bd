// SPDX-License-Identifier: Apache-2.0
#include "cli/report/engines.h"

#include <limits>

#include "gmock/gmock.h"
#include "tests/unit/cli/report/objects.h"

namespace cachewarm::cli::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the section of a report on one warmup with these starts.
std::string SectionOf(const std::vector<api::StartSample>& recent) {
  api::WarmupStatus status;
  status.starts.recent = recent;
  Collector collector("");
  collector.AddWarmup(WarmupObject("models", "llama", status));
  return EnginesSection(collector.Finish(WallTime{}, "1"));
}

api::StartSample Sample(api::StartResult result, const api::EngineStart& engine) {
  return {.pod_uid = "a", .gpu_type = "l4", .result = result, .engine = engine};
}

TEST(ReportEngines, SectionIsAbsentWithoutReports) {
  EXPECT_EQ(SectionOf({}), "");
  EXPECT_EQ(SectionOf({Sample(api::StartResult::kHit, {.log = api::EngineLog::kNothingFound})}),
            "");
}

TEST(ReportEngines, ColdIsBesideWarm) {
  const std::string html =
      SectionOf({Sample(api::StartResult::kCold, {.log = api::EngineLog::kFound,
                                                  .compile_seconds = 71.8,
                                                  .kv_cache_tokens = 1'106'304}),
                 Sample(api::StartResult::kHit, {.log = api::EngineLog::kFound,
                                                 .compile_seconds = 9.25,
                                                 .graph_capture_seconds = 14,
                                                 .kv_cache_tokens = 1'188'640})});
  for (const char* text : {"models/llama", "1m12s", "1,106,304", "9.2s", "14s", "1,188,640"}) {
    EXPECT_THAT(html, HasSubstr(text));
  }
  EXPECT_LT(html.find(">cold<"), html.find(">warm<"));
}

TEST(ReportEngines, NumbersOfAnUntrustedStatusAreBounded) {
  const std::string html = SectionOf(
      {Sample(api::StartResult::kHit, {.log = api::EngineLog::kFound,
                                       .weights_seconds = std::numeric_limits<double>::max(),
                                       .compile_seconds = -5,
                                       .kv_cache_tokens = std::numeric_limits<int64_t>::max()})});
  EXPECT_THAT(html, Not(HasSubstr("-5")));
  EXPECT_THAT(html, HasSubstr("9,223,372,036,854,775,807"));
}

}  // namespace
}  // namespace cachewarm::cli::report
