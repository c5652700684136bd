// SPDX-License-Identifier: Apache-2.0
// The page of "cachewarm report" for clusters kept as files: NAME.json holds the objects, NAME.html
// is the page. tests/report opens the pages in a browser.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/report/model.h"
#include "cli/report/page.h"
#include "gtest/gtest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/source_dir.h"

namespace cachewarm::cli::report {
namespace {

std::string PathOf(const std::string& file) {
  return fakes::SourceDir() + "/tests/golden/report/" + file;
}

std::string ReadGolden(const std::string& file) {
  std::ifstream stream(PathOf(file));
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

Report ReportOf(const codec::Json& cluster) {
  Collector collector(cluster.value("namespace", ""));
  for (const codec::Json& object : cluster["items"]) {
    if (object["kind"] == "NodeCache") {
      collector.AddNode(object);
    } else {
      collector.AddWarmup(object);
    }
  }
  if (cluster.contains("nodesMissing")) {
    collector.SetNodesMissing(cluster["nodesMissing"]);
  }
  return collector.Finish(*ParseTime(std::string(cluster["time"])), "0.0.0-golden");
}

class ReportGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(ReportGolden, PageIsThatOfTheFile) {
  const auto cluster = codec::ParseJson(ReadGolden(GetParam() + ".json"));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const std::string page = RenderPage(ReportOf(*cluster));
  const std::string file = GetParam() + ".html";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(PathOf(file)) << page;
  }
  // EXPECT_EQ() would print both pages.
  EXPECT_TRUE(page == ReadGolden(file)) << "`make golden` rewrites tests/golden/report/" << file;
}

INSTANTIATE_TEST_SUITE_P(Clusters, ReportGolden,
                         ::testing::Values("example", "empty", "hostile", "namespace"));

}  // namespace
}  // namespace cachewarm::cli::report
