// SPDX-License-Identifier: Apache-2.0
#include "cli/status/engine_table.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"

namespace cachewarm::status {
namespace {

api::StartSample Sample(api::StartResult result, const api::EngineStart& engine) {
  return {.gpu_type = "cpu", .result = result, .engine = engine};
}

std::string Text(const std::vector<cli::Row>& table) {
  std::string text;
  for (const cli::Row& row : table) {
    for (const cli::Cell& cell : row) {
      text += cell.text + "|";
    }
    text += "\n";
  }
  return text;
}

TEST(EngineTable, IsEmptyWithoutReports) {
  api::Starts starts;
  EXPECT_TRUE(EngineTable(starts).empty());
  EXPECT_TRUE(EngineJson(starts).empty());
  starts.recent = {Sample(api::StartResult::kHit, {.log = api::EngineLog::kNothingFound}),
                   Sample(api::StartResult::kCold, {.log = api::EngineLog::kUnreadable})};
  EXPECT_TRUE(EngineTable(starts).empty());
}

TEST(EngineTable, MissingNumbersAreDashesAndAbsentFromJson) {
  api::Starts starts;
  starts.recent = {Sample(api::StartResult::kHit, {.log = api::EngineLog::kFound,
                                                   .weights_seconds = 59.9,
                                                   .compile_seconds = 60,
                                                   .init_seconds = 1e300})};
  EXPECT_EQ(Text(EngineTable(starts)),
            "GPU TYPE|START|STARTS|WEIGHTS|COMPILE|GRAPHS|INIT|KV TOKENS|\n"
            "cpu|cold|0|-|-|-|-|-|\n"
            "cpu|warm|1|59.9s|1m00s|-|11574d1h|-|\n");
  EXPECT_EQ(EngineJson(starts)[1].dump(),
            R"({"compileSeconds":60.0,"gpuType":"cpu","initSeconds":1e+300,"start":"warm",)"
            R"("starts":1,"weightsSeconds":59.9})");
}

}  // namespace
}  // namespace cachewarm::status
