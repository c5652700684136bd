// SPDX-License-Identifier: Apache-2.0
#include "cli/report/page.h"

#include <regex>

#include "cli/report/style.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "lib/base/clock.h"
#include "lib/codec/base64.h"
#include "tests/unit/cli/report/objects.h"

namespace cachewarm::cli::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t CountIn(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// A cluster of many warmups: the first saves most, the last loses time.
std::string PageOf(int warmups, int nodes, int starts) {
  Collector collector("");
  for (int i = 0; i < warmups; ++i) {
    api::WarmupStatus status;
    status.starts.counts = {.hit = 900, .miss = i};
    status.starts.saved_seconds = 10'000 - i;
    status.starts.lost_seconds = i == warmups - 1 ? 50'000 : 0;
    status.starts.cold_median_seconds = 40;
    status.starts.warm_median_seconds = 10;
    for (int start = 0; start < starts; ++start) {
      status.starts.recent.push_back({.pod_uid = "u",
                                      .key = std::string(64, 'a'),
                                      .result = api::StartResult::kHit,
                                      .start_seconds = 10});
    }
    status.bundles = {BundleOf("nvidia/type-" + std::to_string(i), std::to_string(i), 1000 + i)};
    status.conditions = {
        {.type = "Degraded", .status = "True", .reason = "BuildFailed", .message = "m"}};
    collector.AddWarmup(WarmupObject("team", "warmup-" + std::to_string(10'000 + i), status));
  }
  for (int i = 0; i < nodes; ++i) {
    api::NodeCacheStatus status;
    status.node.gpu_type = "nvidia/type-" + std::to_string(i);
    status.node.root.used_bytes = 1'000'000 + i;
    collector.AddNode(NodeObject("node-" + std::to_string(i), {}, status));
  }
  return RenderPage(collector.Finish(WallTime(std::chrono::hours(500'000)), "1.2.3"));
}

TEST(ReportPage, SizeIsBoundedInALargeCluster) {
  const std::string page = PageOf(2000, 1000, 10);
  EXPECT_LT(page.size(), 300'000U);
  EXPECT_THAT(page, HasSubstr("read from 2,000 CacheWarmups and 1,000 NodeCaches"));
  EXPECT_THAT(page, HasSubstr("Of 3,799,000 starts that count"));
}

TEST(ReportPage, SizeIsBoundedIfEveryTextIsLong) {
  Collector collector("");
  for (int i = 0; i < 300; ++i) {
    api::WarmupStatus status;
    api::BundleStatus bundle =
        BundleOf(fmt::format("{}-{}", std::string(180, '<'), i), std::to_string(i), 1);
    bundle.image = std::string(1024, '"');
    status.bundles = {bundle};
    status.conditions = {{.type = "Degraded",
                          .status = "True",
                          .reason = std::string(100, '&'),
                          .message = std::string(1024, '<')}};
    status.starts.counts.hit = 1;
    collector.AddWarmup(WarmupObject(std::string(200, '<'), fmt::format("{}", i), status));
  }
  const Report report = collector.Finish(WallTime{}, "1");
  ASSERT_EQ(report.warmups.size(), 300U);
  EXPECT_LT(RenderPage(report).size(), 2'000'000U);
}

TEST(ReportPage, LeftOutRowsAreCounted) {
  const std::string page = PageOf(200, 150, 2);
  EXPECT_THAT(page, HasSubstr("Shown are the 6 warmups with the most starts, of 200."));
  EXPECT_THAT(page, HasSubstr("Shown are the 12 warmups with the largest saving, of 200."));
  EXPECT_THAT(page, HasSubstr("188 other warmups together"));
  EXPECT_THAT(page, HasSubstr("Shown are 12 of 200 GPU types."));
  EXPECT_THAT(page, HasSubstr("Shown are the 10 with the most bytes."));
  EXPECT_EQ(CountIn(page, "<p>100 more warmups are not listed.</p>"), 3U)
      << "medians, savings and results";
  EXPECT_THAT(page, HasSubstr("<p>100 more GPU types are not listed.</p>"));
  EXPECT_THAT(page, HasSubstr("<p>100 more bundles are not listed.</p>"));
  EXPECT_THAT(page, HasSubstr("<p>50 more nodes are not listed.</p>"));
  EXPECT_THAT(page, HasSubstr("<p>180 more problems are not listed.</p>"));
}

TEST(ReportPage, WarmupThatLostTimeIsShownInALargeCluster) {
  const std::string page = PageOf(200, 0, 2);
  const size_t chart = page.find("id=\"savings-chart");
  const std::string svg = page.substr(chart, page.find("</svg>", chart) - chart);
  EXPECT_THAT(svg, HasSubstr("team/warmup-10000"));
  EXPECT_THAT(svg, HasSubstr("team/warmup-10199"));
  EXPECT_EQ(CountIn(svg, "<rect class=\"cold\""), 1U);
}

TEST(ReportPage, PolicyAllowsOnlyTheStylesheetOfThePage) {
  const std::string page = PageOf(1, 0, 0);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(page, match, std::regex("style-src 'sha256-([A-Za-z0-9+/=]+)'")));
  const auto digest = codec::DecodeBase64(match[1].str());
  ASSERT_TRUE(digest.ok());
  std::string hex;
  for (const char byte : *digest) {
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  EXPECT_EQ(hex, DigestOf(Stylesheet()).hex());
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr(fmt::format("<style>{}</style>", Stylesheet())));
  EXPECT_EQ(Stylesheet().find_first_of("<&"), std::string_view::npos);
}

TEST(ReportPage, NodesThatCouldNotBeReadAreExplained) {
  Collector collector("team");
  collector.SetNodesMissing("nodecaches: <forbidden>");
  const std::string page = RenderPage(collector.Finish(WallTime{}, "1"));
  EXPECT_THAT(page, HasSubstr("The nodes could not be read: nodecaches: &lt;forbidden&gt;"));
  EXPECT_THAT(page, HasSubstr("Model start-up report of namespace team"));
}

TEST(ReportPage, PageIsRecognisedAsAReport) {
  const std::string page = PageOf(0, 0, 0);
  EXPECT_TRUE(IsReportPage(page));
  EXPECT_TRUE(IsReportPage(page.substr(0, 200)));
  EXPECT_FALSE(IsReportPage("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<title>x</title>"));
  EXPECT_FALSE(IsReportPage(""));
}

TEST(ReportPage, NumbersOfATableAreAlignedAtTheRight) {
  EXPECT_THAT(PageOf(1, 1, 1), HasSubstr("<td class=\"number\">1.0 MB</td>"));
}

TEST(ReportPage, HealthyClusterHasNoSectionAboutProblems) {
  Collector collector("");
  const std::string page = RenderPage(collector.Finish(WallTime{}, "1"));
  EXPECT_THAT(page, Not(HasSubstr("Needs attention")));
  EXPECT_THAT(PageOf(1, 0, 0), HasSubstr("Needs attention"));
}

}  // namespace
}  // namespace cachewarm::cli::report
