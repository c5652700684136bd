// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::Condition;
using fakes::ReasonOf;
using fakes::SnapshotBuilder;
using Names = std::vector<std::string>;

SnapshotBuilder Two() {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "n2"});
  builder.Accepted();
  return builder;
}

void AddPod(SnapshotBuilder& builder, const std::string& revision, const std::string& result) {
  builder.Pod({.name = "p-" + revision,
               .node = "n1",
               .revision = revision,
               .created = 80,
               .started = 90,
               .ready = 95,
               .annotations = {{"cachewarm.io/start", "{\"result\":\"" + result + "\"}"}}});
}

Names WarmRevisions(const SnapshotBuilder& builder) {
  return builder.Decide().status.injection->warm_revisions;
}

// ---- admission --------------------------------------------------------------------------------

TEST(Status, MissingAdmissionIsReportedInReady) {
  SnapshotBuilder builder = Two();
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
  builder.in().admission_missing = "apply manifests/install-webhook.yaml";
  const Plan plan = builder.Decide();
  const api::Condition* ready = Condition(plan, "Ready");
  EXPECT_EQ(ready->status, "False");
  EXPECT_EQ(ready->reason, "NoAdmission");
  EXPECT_EQ(ready->message, "apply manifests/install-webhook.yaml");
  EXPECT_TRUE(plan.status.injection.has_value())
      << "so that it works as soon as admission is installed";
}

// ---- warm revisions -----------------------------------------------------------------------------

TEST(Status, RevisionWithHitIsWarmOnceAllNodesAre) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1"}});
  AddPod(builder, "r1", "hit");
  EXPECT_TRUE(WarmRevisions(builder).empty()) << "n2 has no bundle yet";
  builder.reported("n2").bundles = {
      {.digest = fakes::DigestNamed("a"), .state = api::BundleState::kActive}};
  EXPECT_EQ(WarmRevisions(builder), Names{"r1"});
}

TEST(Status, CapturedRevisionIsWarmOnceAllNodesAre) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  builder.status().builders = {{.key = builder.Key("n1"),
                                .revision = "r7",
                                .state = api::BuilderState::kCaptured,
                                .elected_time = At(1),
                                .finished_time = At(10)}};
  EXPECT_EQ(WarmRevisions(builder), Names{"r7"});
}

class Unproven : public testing::TestWithParam<const char*> {};

TEST_P(Unproven, RevisionWithoutHitIsNotWarm) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  AddPod(builder, "r1", GetParam());
  EXPECT_TRUE(WarmRevisions(builder).empty());
}

INSTANTIATE_TEST_SUITE_P(All, Unproven,
                         testing::Values("miss", "cold", "inert", "hollow", "unknown", "partial"));

TEST(Status, WarmRevisionOutlivesItsPods) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  builder.status().injection->warm_revisions = {"r0"};
  EXPECT_EQ(WarmRevisions(builder), Names{"r0"});
}

TEST(Status, ColdNodeMakesRevisionsCold) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  builder.status().injection->warm_revisions = {"r0"};
  builder.Node({.name = "joined"});
  EXPECT_TRUE(WarmRevisions(builder).empty());
}

TEST(Status, UnpreparedNodeMakesRevisionsCold) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  builder.status().injection->warm_revisions = {"r0"};
  builder.Node({.name = "bare", .agent = false, .prepared = false, .has_facts = false});
  const Plan plan = builder.Decide();
  ASSERT_TRUE(plan.status.injection.has_value());
  EXPECT_TRUE(plan.status.injection->warm_revisions.empty());
  EXPECT_TRUE(plan.status.injection->gate);
}

TEST(Status, NodeThatIsNotReadyIsIgnored) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  builder.status().injection->warm_revisions = {"r0"};
  builder.Node({.name = "down"});
  builder.node("down").ready = false;
  EXPECT_EQ(WarmRevisions(builder), Names{"r0"});
}

TEST(Status, NamesAtMostSixteenRevisionsWithPodsFirst) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  for (int i = 0; i < 16; ++i) {
    builder.status().injection->warm_revisions.push_back("a" + std::to_string(100 + i));
  }
  AddPod(builder, "zz", "hit");
  const Names names = WarmRevisions(builder);
  EXPECT_EQ(names.size(), 16U);
  EXPECT_EQ(names.back(), "zz");
}

TEST(Status, RevisionWithTwoImagesIsWarmOnceBothAre) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  AddPod(builder, "r1", "hit");
  EXPECT_EQ(WarmRevisions(builder), Names{"r1"});
  builder.Pod({.name = "leader",
               .node = "n1",
               .revision = "r1",
               .image = "leader:1",
               .created = 1,
               .started = 2,
               .ready = 3});
  EXPECT_TRUE(WarmRevisions(builder).empty());
  builder.Bundle(
      {.node = "n1", .image = "leader:1", .digest = "b", .published = 10, .active = {"n1", "n2"}});
  EXPECT_EQ(WarmRevisions(builder), Names{"r1"});
}

TEST(Status, RevisionWithoutBundleIsNotWarm) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  builder.Pod({.name = "old",
               .node = "n1",
               .revision = "r0",
               .image = "server:0",
               .created = 1,
               .started = 2,
               .ready = 3,
               .annotations = {{"cachewarm.io/start", R"({"result":"hit"})"}}});
  EXPECT_TRUE(WarmRevisions(builder).empty());
}

// ---- conditions ---------------------------------------------------------------------------------

TEST(Status, WarmReportsProgress) {
  SnapshotBuilder builder = Two();
  EXPECT_EQ(ReasonOf(builder.Decide(), "Warm"), "NoBundle");
  builder.Pod({.name = "b", .node = "n1", .created = 80, .started = 90});
  EXPECT_EQ(ReasonOf(builder.Decide(), "Warm"), "Building");
  builder.Bundle({.node = "n1", .published = 95, .active = {"n1"}});
  const Plan distributing = builder.Decide();
  EXPECT_EQ(ReasonOf(distributing, "Warm"), "Distributing");
  EXPECT_EQ(distributing.status.summary.types, "0/1");
  EXPECT_EQ(distributing.status.summary.nodes, "1/2");
  builder.reported("n2").bundles = {
      {.digest = fakes::DigestNamed("a"), .state = api::BundleState::kActive}};
  const Plan warm = builder.Decide();
  EXPECT_EQ(ReasonOf(warm, "Warm"), "Distributed");
  EXPECT_EQ(Condition(warm, "Warm")->status, "True");
  EXPECT_EQ(warm.status.summary.types, "1/1");
  EXPECT_EQ(warm.status.summary.nodes, "2/2");
}

TEST(Status, ReadyIsTrueBeforeWarmAndSaysSo) {
  SnapshotBuilder builder = Two();
  const Plan cold = builder.Decide();
  EXPECT_EQ(Condition(cold, "Ready")->status, "True");
  EXPECT_EQ(Condition(cold, "Warm")->status, "False");
  EXPECT_NE(Condition(cold, "Ready")->message.find("; the CacheWarmup is not warm yet (NoBundle)"),
            std::string::npos)
      << Condition(cold, "Ready")->message;
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  const Plan warm = builder.Decide();
  EXPECT_EQ(Condition(warm, "Warm")->status, "True");
  EXPECT_EQ(Condition(warm, "Ready")->message.find("not warm"), std::string::npos);
}

TEST(Status, NoConditionHasAnEmptyMessage) {
  SnapshotBuilder builder = Two();
  for (const api::Condition& condition : builder.Decide().status.conditions) {
    EXPECT_NE(condition.message, "") << condition.type;
  }
}

struct DegradedCase {
  const char* node_reason;
  const char* reason;
};

class Degraded : public testing::TestWithParam<DegradedCase> {};

TEST_P(Degraded, NamesFailuresOnNodes) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1"}});
  builder.reported("n2").bundles = {{.digest = fakes::DigestNamed("a"),
                                     .state = api::BundleState::kFailed,
                                     .reason = GetParam().node_reason,
                                     .message = "words of the agent"}};
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Degraded"), GetParam().reason);
  EXPECT_EQ(Condition(plan, "Degraded")->status, "True");
  EXPECT_NE(Condition(plan, "Degraded")->message.find("n2: words of the agent"), std::string::npos);
  EXPECT_TRUE(fakes::HasEvent(plan, GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(All, Degraded,
                         testing::Values(DegradedCase{"FetchFailed", "StoreError"},
                                         DegradedCase{"DiskFull", "NodesFailed"},
                                         DegradedCase{"DiskFailed", "NodesFailed"},
                                         DegradedCase{"BundleRejected", "NodesFailed"},
                                         DegradedCase{"TreeDamaged", "NodesFailed"},
                                         DegradedCase{"VerifyFailed", "NodesFailed"}),
                         [](const auto& each) { return each.param.node_reason; });

TEST(Status, SavedColumnShowsNetSavings) {
  SnapshotBuilder builder = Two();
  builder.status().starts.recent = {{.pod_uid = "x"}};
  builder.status().starts.saved_seconds = 100;
  builder.status().starts.lost_seconds = 160;
  EXPECT_EQ(builder.Decide().status.summary.saved, "-1m00s");
  builder.status().starts.saved_seconds = 13'420;
  EXPECT_EQ(builder.Decide().status.summary.saved, "3h41m");
}

TEST(Status, PlanningOnAnAppliedStatusChangesNothing) {
  SnapshotBuilder builder = Two();
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1", "n2"}});
  builder.status() = builder.Decide().status;
  const Plan again = builder.Decide();
  EXPECT_FALSE(again.status_changed);
  EXPECT_TRUE(again.events.empty());
  EXPECT_FALSE(again.set_inject_label.has_value());
}

TEST(Status, SurvivesApiServerRoundTrip) {
  SnapshotBuilder builder = Two();
  builder.Now(100);
  builder.in().now += std::chrono::milliseconds(123);
  builder.Bundle({.node = "n1", .published = 10, .active = {"n1"}});
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  builder.cache("n1").status.starts = {
      {.pod_uid = "uid-a", .result = api::StartResult::kHit, .compile_seconds = 1.5}};
  const Plan plan = builder.Decide();
  codec::Json object = {{"apiVersion", "cachewarm.io/v1alpha1"},
                        {"kind", "CacheWarmup"},
                        {"metadata", {{"name", "llama"}, {"namespace", "models"}, {"uid", "7d0f"}}},
                        {"spec", api::EncodeSpec(builder.warmup().spec)},
                        {"status", api::EncodeStatus(plan.status)}};
  const auto decoded = api::DecodeCacheWarmup(object);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->status, plan.status) << "otherwise every plan would write it again";
}

}  // namespace
}  // namespace cachewarm::plan
