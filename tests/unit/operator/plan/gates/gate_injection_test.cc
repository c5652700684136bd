// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/snapshot_builder.h"

// Mode Auto: status.injection.gate, which admission uses without asking an operator.
namespace cachewarm::plan {
namespace {

using fakes::SnapshotBuilder;

SnapshotBuilder Nodes(int count) {
  SnapshotBuilder builder;
  builder.warmup().spec.gate.mode = api::GateMode::kAuto;
  builder.warmup().spec.compile.settle_seconds = 2;
  for (int i = 1; i <= count; ++i) {
    builder.Node({.name = "n" + std::to_string(i)});
  }
  builder.Accepted();
  return builder;
}

bool Gates(const SnapshotBuilder& builder) {
  return builder.Decide().status.injection->gate;
}

TEST(GateInjection, WorkloadWithoutBundleOrBuildIsNotGated) {
  SnapshotBuilder builder = Nodes(2);
  EXPECT_FALSE(Gates(builder));
  builder.Pod({.name = "builder", .node = "n1", .created = 90, .started = 92});
  EXPECT_FALSE(Gates(builder)) << "its duration is unknown";
}

TEST(GateInjection, NearlyFinishedBuildAddsGateAndRequeues) {
  SnapshotBuilder builder = Nodes(2);
  for (const auto& [result, seconds] :
       {std::pair(api::StartResult::kCold, 60.0), {api::StartResult::kHit, 20.0}}) {
    builder.status().starts.recent.push_back({.pod_uid = "old",
                                              .key = builder.Key("n1"),
                                              .gpu_type = "cpu",
                                              .result = result,
                                              .start_seconds = seconds});
  }
  builder.Pod({.name = "builder", .node = "n1", .created = 90, .started = 92});
  const Plan plan = builder.Decide();  // it ends at 159, and the gain is 40 s
  EXPECT_FALSE(plan.status.injection->gate);
  EXPECT_LE(*plan.requeue_after, std::chrono::seconds(19));
  builder.Now(120);
  EXPECT_TRUE(Gates(builder));
  builder.Now(200);
  EXPECT_FALSE(Gates(builder)) << "41 s late";
}

TEST(GateInjection, WarmNodesNeedNoGate) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1", "n2"}});
  EXPECT_FALSE(Gates(builder));
}

TEST(GateInjection, PartlyWarmNodesAddGateForPreference) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  EXPECT_TRUE(Gates(builder));
}

TEST(GateInjection, NearlyFinishedFetchAddsGate) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1"});
  EXPECT_TRUE(Gates(builder));
  builder.reported("n1").bundles = {{.digest = fakes::DigestNamed("a"),
                                     .state = api::BundleState::kFetching,
                                     .bytes_done = 50,
                                     .fetch_seconds = 10}};
  EXPECT_FALSE(Gates(builder)) << "190 s are left";
}

TEST(GateInjection, UnusableNodeAddsGateForExclusion) {
  SnapshotBuilder builder = Nodes(2);
  builder.Node({.name = "bad", .agent = false, .prepared = false});
  EXPECT_TRUE(Gates(builder));
}

TEST(GateInjection, NoCapacityAddsNoGate) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  ASSERT_TRUE(Gates(builder));
  for (const char* node : {"n1", "n2"}) {
    builder.view(node).free["pods"] = 0;
  }
  EXPECT_FALSE(Gates(builder));
}

std::vector<std::string> Names(int first, int last) {
  std::vector<std::string> names;
  for (int i = first; i <= last; ++i) {
    names.push_back("n" + std::to_string(i));
  }
  return names;
}

TEST(GateInjection, OneColdNodeInTenAddsNoGate) {
  SnapshotBuilder builder = Nodes(10);
  builder.Bundle({.node = "n1", .active = Names(1, 9)});
  EXPECT_FALSE(Gates(builder));
  SnapshotBuilder fewer = Nodes(9);
  fewer.Bundle({.node = "n1", .active = Names(1, 8)});
  EXPECT_TRUE(Gates(fewer)) << "one in nine";
}

TEST(GateInjection, FivePercentColdNodesOfAThousandAddNoGate) {
  SnapshotBuilder builder = Nodes(1000);
  builder.Bundle({.node = "n1", .active = Names(1, 950)});
  EXPECT_FALSE(Gates(builder));
}

TEST(GateInjection, RevisionThatIsWarmOnNineOfTenNodesIsWarm) {
  SnapshotBuilder builder = Nodes(10);
  builder.Bundle({.node = "n1", .active = Names(1, 9)});
  builder.Pod({.name = "a",
               .node = "n1",
               .created = 10,
               .started = 12,
               .ready = 20,
               .annotations = {{"cachewarm.io/start", R"({"result":"hit"})"}}});
  EXPECT_EQ(builder.Decide().status.injection->warm_revisions, (std::vector<std::string>{"r1"}));
  SnapshotBuilder fewer = Nodes(10);
  fewer.Bundle({.node = "n1", .active = Names(1, 8)});
  fewer.Pod({.name = "a",
             .node = "n1",
             .created = 10,
             .started = 12,
             .ready = 20,
             .annotations = {{"cachewarm.io/start", R"({"result":"hit"})"}}});
  EXPECT_TRUE(fewer.Decide().status.injection->warm_revisions.empty());
}

TEST(GateInjection, RejectedReleaseStopsGatesForTenMinutes) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  ASSERT_TRUE(Gates(builder));
  builder.in().release_refusal = {.time = fakes::At(100), .message = "policy frozen: no updates"};
  builder.Now(110);
  const Plan plan = builder.Decide();
  EXPECT_FALSE(plan.status.injection->gate);
  EXPECT_EQ(fakes::ReasonOf(plan, "Degraded"), "ReleaseRejected");
  EXPECT_NE(fakes::Condition(plan, "Degraded")->message.find("policy frozen: no updates"),
            std::string::npos);
  EXPECT_TRUE(fakes::HasEvent(plan, "ReleaseRejected"));
  EXPECT_LE(*plan.requeue_after, std::chrono::seconds(590));
  builder.Now(700);
  EXPECT_TRUE(Gates(builder));
  EXPECT_EQ(fakes::ReasonOf(builder.Decide(), "Degraded"), "Healthy");
}

}  // namespace
}  // namespace cachewarm::plan
