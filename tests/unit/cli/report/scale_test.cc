// SPDX-License-Identifier: Apache-2.0
#include "cli/report/scale.h"

#include <cmath>
#include <random>

#include "gmock/gmock.h"

namespace cachewarm::cli::report {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Labels(const Scale& scale) {
  std::vector<std::string> labels;
  for (const Tick& tick : scale.ticks) {
    labels.push_back(tick.label);
  }
  return labels;
}

TEST(ReportScale, TicksAreRoundNumbersOfTheUnit) {
  EXPECT_THAT(Labels(MakeScale(0, 434, Unit::kSeconds, 2)), ElementsAre("0", "5m"));
  EXPECT_THAT(Labels(MakeScale(0, 434, Unit::kSeconds, 3)), ElementsAre("0", "2m", "4m", "6m"));
  EXPECT_THAT(Labels(MakeScale(0, 43, Unit::kSeconds, 4)),
              ElementsAre("0", "10s", "20s", "30s", "40s"));
  EXPECT_THAT(Labels(MakeScale(0, 0.5, Unit::kSeconds, 3)), ElementsAre("0", "0.2s", "0.4s"));
  EXPECT_THAT(Labels(MakeScale(0, 140'000, Unit::kSeconds, 3)),
              ElementsAre("0", "12h", "1d", "1.5d"));
  EXPECT_THAT(Labels(MakeScale(0, 680e6, Unit::kBytes, 3)),
              ElementsAre("0", "200 MB", "400 MB", "600 MB"));
  EXPECT_THAT(Labels(MakeScale(0, 3553, Unit::kCount, 3)), ElementsAre("0", "1k", "2k", "3k"));
}

TEST(ReportScale, NothingHasAnAxisToo) {
  EXPECT_THAT(Labels(MakeScale(0, 0, Unit::kCount, 3)), ElementsAre("0", "1"));
  EXPECT_THAT(Labels(MakeScale(0, 0, Unit::kSeconds, 3)), ElementsAre("0", "0.1s"));
}

TEST(ReportScale, SmallPartOfOneSignStaysVisible) {
  const Scale scale = MakeScale(-66, 140'000, Unit::kSeconds, 3);
  EXPECT_NEAR(scale.Position(0), 0.03, 0.002);
  EXPECT_NEAR(MakeScale(-140'000, 66, Unit::kSeconds, 3).Position(0), 0.97, 0.002);
  EXPECT_EQ(MakeScale(-100, 0, Unit::kSeconds, 3).Position(0), 1);
}

TEST(ReportScale, AnyRangeHasFewTicksWithShortLabels) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same ranges in every run
  std::uniform_real_distribution<double> exponent(-4, 16);
  for (int round = 0; round < 3000; ++round) {
    const double highest = round % 5 == 0 ? 0 : std::pow(10, exponent(random));
    const double lowest = round % 3 == 0 ? -std::pow(10, exponent(random)) : 0;
    for (const Unit unit : {Unit::kCount, Unit::kSeconds, Unit::kBytes}) {
      const Scale scale = MakeScale(lowest, highest, unit, 3);
      ASSERT_GE(scale.ticks.size(), 1U);
      EXPECT_LE(scale.ticks.size(), 4U) << lowest << " to " << highest;
      EXPECT_LT(scale.first, scale.last);
      EXPECT_LE(scale.first, lowest);
      EXPECT_GE(scale.last, highest);
      for (const Tick& tick : scale.ticks) {
        EXPECT_LE(tick.label.size(), 7U) << tick.label;
        EXPECT_GE(tick.value, scale.first * (1 + 1e-9) - 1e-9);
        EXPECT_LE(tick.value, scale.last * (1 + 1e-9) + 1e-9);
      }
      EXPECT_EQ(scale.Position(scale.first), 0);
      EXPECT_EQ(scale.Position(scale.last), 1);
    }
  }
}

}  // namespace
}  // namespace cachewarm::cli::report
