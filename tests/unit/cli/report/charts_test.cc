// SPDX-License-Identifier: Apache-2.0
#include "cli/report/charts.h"

#include <regex>

#include "gmock/gmock.h"

namespace cachewarm::cli::report {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// The numbers in every match of the first group of the pattern, in their order.
std::vector<double> Numbers(const std::string& svg, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<double> numbers;
  for (std::sregex_iterator at(svg.begin(), svg.end(), regex), end; at != end; ++at) {
    numbers.push_back(std::stod((*at)[1]));
  }
  return numbers;
}

BarChart Bars(std::vector<BarRow> rows) {
  return {.id = "c", .title = "T", .description = "D", .unit = Unit::kCount, .rows = rows};
}

TEST(ReportCharts, BarsAreAsLongAsTheirValues) {
  const std::string svg = Render(Bars({{"a", "100", {{100, Mark::kWarm}}},
                                       {"b", "25", {{25, Mark::kCold}}},
                                       {"c", "0", {{0, Mark::kCold}}}}));
  EXPECT_THAT(Numbers(svg, "<rect [^>]*width=\"([0-9.]+)%\""), testing::ElementsAre(64, 16, 0));
  EXPECT_THAT(svg, HasSubstr("class=\"cold\""));
}

TEST(ReportCharts, SmallValueHasAVisibleBar) {
  const std::string svg =
      Render(Bars({{"a", "", {{1e6, Mark::kWarm}}}, {"b", "", {{1, Mark::kWarm}}}}));
  EXPECT_THAT(Numbers(svg, "<rect [^>]*width=\"([0-9.]+)%\""), testing::ElementsAre(64, 0.4));
}

TEST(ReportCharts, NegativeBarsEndAtZero) {
  const std::string svg =
      Render(Bars({{"a", "", {{50, Mark::kWarm}}}, {"b", "", {{-50, Mark::kCold}}}}));
  EXPECT_THAT(Numbers(svg, "<rect [^>]*x=\"([0-9.]+)%\""), testing::ElementsAre(32, 0));
  EXPECT_THAT(Numbers(svg, "<rect [^>]*width=\"([0-9.]+)%\""), testing::ElementsAre(32, 32));
}

TEST(ReportCharts, SmallNegativeBarEndsAtZeroToo) {
  const std::string svg =
      Render(Bars({{"a", "", {{1e6, Mark::kWarm}}}, {"b", "", {{-1, Mark::kCold}}}}));
  const double zero = Numbers(svg, "class=\"zero\" x1=\"([0-9.]+)%\"").at(0);
  EXPECT_EQ(Numbers(svg, "<rect [^>]*x=\"([0-9.]+)%\"").at(0), zero);
  EXPECT_NEAR(Numbers(svg, "<rect [^>]*x=\"([0-9.]+)%\"").at(1) + 0.4, zero, 0.02);
}

TEST(ReportCharts, RowsDoNotOverlapAndFillTheChart) {
  const std::string svg = Render(Bars({{"a", "", {{1, Mark::kWarm}, {2, Mark::kCold}}},
                                       {"b", "", {{3, Mark::kWarm}}},
                                       {"c", "", {{3, Mark::kWarm}}}}));
  const auto labels = Numbers(svg, "class=\"label\" x=\"0\" y=\"([0-9]+)\"");
  const auto bars = Numbers(svg, "<rect [^>]*y=\"([0-9]+)\"");
  ASSERT_EQ(labels.size(), 3U);
  ASSERT_EQ(bars.size(), 4U);
  EXPECT_GE(labels[1], bars[1] + 11 + 10) << "a label is about 10 pixels high";
  EXPECT_GE(labels[2], bars[2] + 11 + 10);
  EXPECT_GE(bars[2], labels[1] + 4) << "letters below the line";
  const auto height = Numbers(svg, "<svg [^>]*height=\"([0-9]+)\"");
  EXPECT_GE(height[0], bars[3] + 11 + 15);
}

TEST(ReportCharts, LongLabelsAndValuesAreCut) {
  const std::string svg =
      Render(Bars({{std::string(200, 'x'), std::string(50, '9'), {{1, Mark::kWarm}}}}));
  EXPECT_THAT(svg, Not(HasSubstr(std::string(30, 'x'))));
  EXPECT_THAT(svg, Not(HasSubstr(std::string(12, '9'))));
}

TEST(ReportCharts, TextsAreEscaped) {
  BarChart bars = Bars({{"<b>", "<v>", {{1, Mark::kWarm}}}});
  bars.title = "<t>";
  bars.description = "\"d\"";
  EXPECT_THAT(Render(bars), Not(ContainsRegex("<[btv]>")));
  EXPECT_THAT(Render(bars), HasSubstr("&lt;t&gt;"));
  EXPECT_THAT(Render(bars), HasSubstr("&quot;d&quot;"));
}

TEST(ReportCharts, DotsGoFromLeftToRightAndHighValuesAreOnTop) {
  const std::string svg =
      Render(DotChart{.id = "d",
                      .title = "T",
                      .description = "D",
                      .dots = {{10, Mark::kWarm}, {20, Mark::kPartial}, {10, Mark::kWarm}},
                      .lines = {{20, Mark::kCold}}});
  EXPECT_THAT(Numbers(svg, "<circle [^>]*cx=\"([0-9.]+)%\""), testing::ElementsAre(17, 57.5, 98));
  const auto y = Numbers(svg, "<circle [^>]*cy=\"([0-9.]+)\"");
  EXPECT_EQ(y[0], y[2]);
  EXPECT_LT(y[1], y[0]);
  EXPECT_EQ(Numbers(svg, "class=\"median cold\" [^>]*y1=\"([0-9.]+)\"")[0], y[1]);
}

TEST(ReportCharts, OneDotIsInTheMiddle) {
  const std::string svg =
      Render(DotChart{.id = "d", .title = "T", .description = "D", .dots = {{0, Mark::kCold}}});
  EXPECT_THAT(Numbers(svg, "<rect [^>]*x=\"([0-9.]+)%\""), testing::ElementsAre(57.5));
}

TEST(ReportCharts, MarksDifferInShapeOrFillBesideTheirColour) {
  EXPECT_THAT(Symbol(Mark::kWarm), HasSubstr("<circle class=\"warm\""));
  EXPECT_THAT(Symbol(Mark::kPartial), HasSubstr("<circle class=\"partial\""));
  EXPECT_THAT(Symbol(Mark::kCold), HasSubstr("<rect class=\"cold\""));
  EXPECT_THAT(Symbol(Mark::kMissed), HasSubstr("<rect class=\"missed\""));
}

}  // namespace
}  // namespace cachewarm::cli::report
