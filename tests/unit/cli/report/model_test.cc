// SPDX-License-Identifier: Apache-2.0
#include "cli/report/model.h"

#include <cmath>

#include "gmock/gmock.h"
#include "lib/codec/json_value.h"
#include "tests/unit/cli/report/objects.h"

namespace cachewarm::cli::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kTypeA = "nvidia/h100-80gb-hbm3/sm_90";
const std::string kTypeB = "nvidia/l4/sm_89";

api::WarmupStatus StatusWith(api::Starts starts) {
  api::WarmupStatus status;
  status.starts = std::move(starts);
  return status;
}

std::vector<std::string> NamesOf(const auto& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) {
    names.push_back(row.name);
  }
  return names;
}

TEST(ReportModel, WarmupsAreSortedByNetSavingAndSummed) {
  Collector collector("");
  collector.AddWarmup(WarmupObject(
      "a", "x",
      StatusWith({.counts = {.hit = 1, .miss = 2}, .saved_seconds = 10, .lost_seconds = 30})));
  collector.AddWarmup(WarmupObject(
      "a", "y",
      StatusWith({.counts = {.builder = 1, .hit = 5, .partial = 1, .unknown = 2},
                  .gpu_types = {{.gpu_type = kTypeA,
                                 .saved_gpu_seconds = 8,
                                 .lost_gpu_seconds = 1,
                                 .builder_gpu_seconds = 4,
                                 .late_compiles = 3},
                                {.gpu_type = kTypeB, .saved_gpu_seconds = 2, .late_compiles = 2}},
                  .saved_seconds = 7})));
  const Report report = collector.Finish(WallTime{}, "1");
  EXPECT_THAT(NamesOf(report.warmups), ElementsAre("a/y", "a/x"));
  EXPECT_EQ(report.warmups[0].saved_gpu_seconds, 10);
  EXPECT_EQ(report.total.NetSeconds(), -13);
  EXPECT_EQ(report.total.builder_gpu_seconds, 4);
  EXPECT_EQ(report.total.late_compiles, 5);
  EXPECT_EQ(report.total.counts.hit, 6);
  EXPECT_EQ(CountedStarts(report.total.counts), 9) << "without builders and unknown ones";
  EXPECT_EQ(StartsWithoutUse(report.total.counts), 2);
}

TEST(ReportModel, NamesHaveTheNamespaceOnlyInAReportOnTheCluster) {
  Collector cluster("");
  cluster.AddWarmup(WarmupObject("a", "x", {}));
  EXPECT_EQ(cluster.Finish(WallTime{}, "").warmups[0].name, "a/x");
  Collector one("a");
  one.AddWarmup(WarmupObject("a", "x", {}));
  EXPECT_EQ(one.Finish(WallTime{}, "").warmups[0].name, "x");
}

TEST(ReportModel, ObjectThatIsListedAgainCountsOnce) {
  Collector collector("");
  for (const int hits : {1, 2}) {
    collector.AddWarmup(WarmupObject("a", "x", StatusWith({.counts = {.hit = hits}})));
    collector.AddNode(NodeObject("n", {}, {}));
  }
  const Report report = collector.Finish(WallTime{}, "");
  ASSERT_THAT(report.warmups, SizeIs(1));
  EXPECT_EQ(report.total.counts.hit, 2);
  EXPECT_THAT(report.nodes, SizeIs(1));
}

TEST(ReportModel, BundleOfTwoWarmupsCountsOnce) {
  Collector collector("");
  for (const char* name : {"x", "y"}) {
    api::WarmupStatus status;
    status.bundles = {BundleOf(kTypeA, "one", 100), BundleOf(kTypeB, std::string("b") + name, 7)};
    collector.AddWarmup(WarmupObject("a", name, status));
  }
  const Report report = collector.Finish(WallTime{}, "");
  ASSERT_THAT(report.gpu_types, SizeIs(2));
  EXPECT_EQ(report.gpu_types[0].bundles, 1);
  EXPECT_EQ(report.gpu_types[0].bundle_bytes, 100);
  EXPECT_EQ(report.gpu_types[1].bundles, 2);
  EXPECT_EQ(report.gpu_types[1].bundle_bytes, 14);
  EXPECT_THAT(report.bundles, SizeIs(4));
  EXPECT_EQ(report.bundles[0].bytes, 100) << "largest first";
}

TEST(ReportModel, ReportOnANamespaceHasOnlyItsNodesAndBundles) {
  const auto wanted = [](const std::string& ns, const std::string& uid) {
    return api::WantedWarmup{.uid = uid,
                             .ns = ns,
                             .name = "w",
                             .bundles = {{.key = std::string(64, 'a'), .digest = DigestOf(uid)}}};
  };
  api::NodeCacheSpec spec;
  spec.warmups = {wanted("a", "u1"), wanted("b", "u2")};
  api::NodeCacheStatus status;
  status.node.root.used_bytes = 5;
  status.warmups = {
      {.uid = "u1", .bundles = {{.digest = DigestOf("u1"), .state = api::BundleState::kActive}}},
      {.uid = "u2", .bundles = {{.digest = DigestOf("u2"), .state = api::BundleState::kActive}}}};
  for (const auto& [ns, bundles] : {std::pair("a", 1), std::pair("", 2), std::pair("c", 0)}) {
    Collector collector(ns);
    collector.AddNode(NodeObject("n", spec, status));
    const Report report = collector.Finish(WallTime{}, "");
    ASSERT_THAT(report.nodes, SizeIs(bundles == 0 ? 0 : 1)) << ns;
    if (bundles > 0) {
      EXPECT_EQ(report.nodes[0].bundles_active, bundles) << ns;
      EXPECT_EQ(report.nodes[0].bundles_desired, bundles) << ns;
      EXPECT_EQ(report.node_bytes, 5);
    }
  }
}

TEST(ReportModel, BundleThatIsNotActiveIsMissingOnTheNode) {
  api::NodeCacheSpec spec;
  spec.warmups = {{.uid = "u",
                   .ns = "a",
                   .name = "w",
                   .bundles = {{.key = std::string(64, 'a'), .digest = DigestOf("b")}}}};
  api::NodeCacheStatus status;
  status.warmups = {
      {.uid = "u", .bundles = {{.digest = DigestOf("b"), .state = api::BundleState::kFetching}}}};
  Collector collector("");
  collector.AddNode(NodeObject("n", spec, status));
  const Report report = collector.Finish(WallTime{}, "");
  EXPECT_EQ(report.nodes[0].bundles_active, 0);
  EXPECT_EQ(report.nodes[0].bundles_desired, 1);
}

TEST(ReportModel, ConditionsThatNeedAttentionAreProblems) {
  api::WarmupStatus status;
  const auto condition = [](std::string type, std::string value, std::string reason) {
    return api::Condition{.type = std::move(type),
                          .status = std::move(value),
                          .reason = std::move(reason),
                          .message = "m"};
  };
  status.conditions = {condition("Ready", "False", "NoFittingNode"),
                       condition("Warm", "False", "Building"),
                       condition("Degraded", "True", "BuildFailed")};
  status.suspended_bundles = {{.key = std::string(64, 'a'),
                               .digest = DigestOf("s"),
                               .gpu_type = kTypeA,
                               .cpu_class = "c",
                               .image = "i",
                               .message = "2 starts hung"}};
  api::WarmupStatus paused;
  paused.conditions = {condition("Ready", "False", "Paused"),
                       condition("Degraded", "False", "Healthy")};
  api::NodeCacheStatus node;
  node.conditions = {condition("GPUNotVisible", "True", "DriverMissing"),
                     condition("GPUKindsMixed", "False", "OneKind")};
  node.node.root.message = "read-only file system";
  Collector collector("");
  collector.AddWarmup(WarmupObject("a", "x", status));
  collector.AddWarmup(WarmupObject("a", "paused", paused));
  collector.AddNode(NodeObject("n", {}, node));
  std::vector<std::string> reasons;
  for (const ProblemRow& problem : collector.Finish(WallTime{}, "").problems) {
    reasons.push_back(problem.object + " " + problem.reason);
  }
  EXPECT_THAT(reasons, ElementsAre("CacheWarmup a/x NoFittingNode", "CacheWarmup a/x BuildFailed",
                                   "CacheWarmup a/x BundleSuspended", "Node n DriverMissing",
                                   "Node n DirectoryUnusable"));
}

TEST(ReportModel, ObjectThatCannotBeDecodedIsNamed) {
  Collector collector("");
  const codec::Json bad = {{"metadata", {{"namespace", "a"}, {"name", "x"}}}, {"spec", 5}};
  collector.AddWarmup(bad);
  collector.AddWarmup(bad);
  collector.AddNode(codec::Json("text"));
  const Report report = collector.Finish(WallTime{}, "");
  ASSERT_THAT(report.unreadable, SizeIs(2)) << "an object that is listed again counts once";
  EXPECT_EQ(report.unreadable[0].object, "CacheWarmup a/x");
  EXPECT_THAT(report.unreadable[0].message, HasSubstr("spec"));
  EXPECT_EQ(report.unreadable[1].object, "NodeCache");
  EXPECT_THAT(report.warmups, IsEmpty());
}

TEST(ReportModel, ExtremeNumbersStayFinite) {
  Collector collector("");
  for (int i = 0; i < 100; ++i) {
    api::Starts starts{.counts = {.hit = INT64_MAX, .miss = INT64_MAX}, .saved_seconds = 1e308};
    starts.recent = {{.pod_uid = "u", .key = std::string(64, 'a'), .start_seconds = 1e308}};
    collector.AddWarmup(WarmupObject("a", "x" + std::to_string(i), StatusWith(starts)));
  }
  const Report report = collector.Finish(WallTime{}, "");
  ASSERT_THAT(report.warmups, SizeIs(100));
  EXPECT_GT(CountedStarts(report.total.counts), 0);
  EXPECT_TRUE(std::isfinite(report.total.saved_seconds));
  EXPECT_LE(report.warmups[0].recent[0].seconds, 1e12);
}

}  // namespace
}  // namespace cachewarm::cli::report
