// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/builders/builders_fixture.h"

namespace cachewarm::plan {
namespace {

using api::BuilderState;
using api::BuilderStatus;
using fakes::At;
using fakes::HasEvent;
using fakes::SnapshotBuilder;

TEST(Election, NoBuilderBeforeAPodStarts) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "a", .node = "n1", .created = 90});
  EXPECT_TRUE(builder.Decide().status.builders.empty());
}

TEST(Election, FirstStartedPodIsElectedAndCaptureRequested) {
  SnapshotBuilder builder = Accepted(2);
  builder.Pod({.name = "late", .node = "n1", .created = 80, .started = 95});
  builder.Pod({.name = "early", .node = "n2", .created = 85, .started = 91});
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  const BuilderStatus& elected = plan.status.builders[0];
  EXPECT_EQ(elected.pod_name, "early");
  EXPECT_EQ(elected.node, "n2");
  EXPECT_EQ(elected.attempt, 1);
  EXPECT_EQ(elected.state, BuilderState::kElected);
  EXPECT_EQ(elected.revision, "r1");
  EXPECT_TRUE(HasEvent(plan, "BuilderElected"));
  ASSERT_NE(fakes::EntriesOf(plan, "n2"), nullptr);
  const auto& captures = fakes::EntriesOf(plan, "n2")->spec.captures;
  ASSERT_EQ(captures.size(), 1U);
  EXPECT_EQ(captures[0].pod_uid, "uid-early");
  EXPECT_EQ(captures[0].key, builder.Key("n2"));
  EXPECT_EQ(captures[0].started_time, At(91));
  EXPECT_EQ(captures[0].ready_time, WallTime{});
  EXPECT_EQ(captures[0].settle_seconds, 10);
}

TEST(Election, AfterAFailureAnotherPodIsElected) {
  SnapshotBuilder builder = Accepted(2);
  builder.Pod({.name = "early", .node = "n1", .created = 80, .started = 91});
  builder.Pod({.name = "late", .node = "n2", .created = 85, .started = 95});
  BuilderStatus last = Failed(builder, 1, 100);
  last.pod_uid = "uid-early";
  builder.status().builders = {last};
  builder.Now(200).in().dry_run.time = At(200);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kElected);
  EXPECT_EQ(plan.status.builders[0].pod_name, "late");
}

TEST(Election, TheOnlyPodIsElectedAgainAfterAFailure) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "only", .node = "n1", .created = 80, .started = 91});
  BuilderStatus last = Failed(builder, 1, 100);
  last.pod_uid = "uid-only";
  builder.status().builders = {last};
  builder.Now(200).in().dry_run.time = At(200);
  EXPECT_EQ(builder.Decide().status.builders[0].pod_name, "only");
}

TEST(Election, SimultaneousStartsAreOrderedByUid) {
  SnapshotBuilder builder = Accepted(2);
  builder.Pod({.name = "b", .node = "n1", .created = 80, .started = 95});
  builder.Pod({.name = "a", .node = "n2", .created = 85, .started = 95});
  EXPECT_EQ(builder.Decide().status.builders[0].pod_name, "a");
}

TEST(Election, EachTypeAndClassHasItsOwnBuilder) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Node({.name = "n2", .cpu_class = fakes::kAvx2});
  builder.Node({.name = "n3", .gpu_type = fakes::kH100});
  builder.Accepted();
  for (const char* node : {"n1", "n2", "n3"}) {
    builder.Pod({.name = std::string("p-") + node, .node = node, .created = 80, .started = 90});
  }
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders.size(), 3U);
  for (const char* node : {"n1", "n2", "n3"}) {
    ASSERT_NE(BuilderOf(plan, builder.Key(node)), nullptr);
    EXPECT_EQ(BuilderOf(plan, builder.Key(node))->node, node);
  }
}

struct NotElected {
  const char* name;
  fakes::PodSetup pod;
};

class Unelectable : public testing::TestWithParam<NotElected> {};

TEST_P(Unelectable, PodIsNotElected) {
  SnapshotBuilder builder = Accepted();
  builder.Pod(GetParam().pod);
  EXPECT_TRUE(builder.Decide().status.builders.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, Unelectable,
    testing::Values(
        NotElected{"not_injected", {.name = "a", .node = "n1", .injected = false, .started = 90}},
        NotElected{"deleting", {.name = "a", .node = "n1", .started = 90, .deleting = true}},
        NotElected{"old_image", {.name = "a", .node = "n1", .image = "server:0", .started = 90}},
        NotElected{"elsewhere", {.name = "a", .node = "unknown", .started = 90}},
        NotElected{"finished", {.name = "a", .node = "n1", .started = 90, .exit_code = 1}}),
    [](const auto& each) { return each.param.name; });

TEST(Election, NodeWithUnknownFactsBuildsNothing) {
  SnapshotBuilder builder = Accepted();
  builder.cache("n1").status.node.cpu_class = "../../etc";
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  EXPECT_TRUE(builder.Decide().status.builders.empty());
}

TEST(Election, KeyWithBundleNeedsNoBuilder) {
  SnapshotBuilder builder = Accepted();
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  EXPECT_TRUE(builder.Decide().status.builders.empty());
}

TEST(Election, BundleWithoutNativeCodeServesOtherCpuClass) {
  SnapshotBuilder builder = Accepted();
  builder.Node({.name = "n2", .cpu_class = fakes::kAvx2});
  builder.Bundle({.node = "n1", .native = false, .active = {"n1"}});
  builder.Pod({.name = "a", .node = "n2", .created = 80, .started = 90});
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.status.builders.empty());
  ASSERT_NE(fakes::EntriesOf(plan, "n2"), nullptr);
  EXPECT_EQ(fakes::EntriesOf(plan, "n2")->spec.warmups[0].bundles.size(), 1U);
}

TEST(Election, NativeBundleServesOnlyItsCpuClass) {
  SnapshotBuilder builder = Accepted();
  builder.Node({.name = "n2", .cpu_class = fakes::kAvx2});
  builder.Bundle({.node = "n1", .native = true, .active = {"n1"}});
  builder.Pod({.name = "a", .node = "n2", .created = 80, .started = 90});
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].cpu_class, fakes::kAvx2);
  ASSERT_NE(fakes::EntriesOf(plan, "n2"), nullptr);
  EXPECT_TRUE(fakes::EntriesOf(plan, "n2")->spec.warmups[0].bundles.empty());
}

TEST(Election, OldestHeldPodIsReleasedToNodesOfDueType) {
  SnapshotBuilder builder = Accepted(2);
  builder.Pod({.name = "younger", .held = true, .created = 98});
  builder.Pod({.name = "older", .held = true, .created = 97});
  const Plan plan = builder.Decide();
  const GateRelease* release = fakes::ReleaseOf(plan, "older");
  ASSERT_NE(release, nullptr);
  EXPECT_EQ(release->reason, "ReleasedForBuild");
  EXPECT_EQ(release->preferred, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(fakes::ReleaseOf(plan, "younger"), nullptr);
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].pod_name, "older");
  EXPECT_EQ(plan.status.builders[0].node, "") << "it has not started yet";
}

TEST(Election, PodWithAnotherGateIsNotElected) {
  SnapshotBuilder builder = Accepted();
  builder.Pod(
      {.name = "queued", .held = true, .created = 97, .other_gates = {"kueue.x-k8s.io/admission"}});
  builder.Pod({.name = "free", .held = true, .created = 98});
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].pod_name, "free");
  ASSERT_NE(fakes::ReleaseOf(plan, "queued"), nullptr);
  EXPECT_EQ(fakes::ReleaseOf(plan, "queued")->reason, "ReleasedOtherGate");
}

TEST(Election, OneHeldPodPerDueTypeIsReleased) {
  SnapshotBuilder builder = Accepted();
  builder.Node({.name = "n2", .cpu_class = fakes::kAvx2});
  for (int i = 0; i < 5; ++i) {
    builder.Pod({.name = "p" + std::to_string(i), .held = true, .created = 90 + i});
  }
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.releases.size(), 2U);
  EXPECT_EQ(plan.status.builders.size(), 2U);
  EXPECT_NE(plan.status.builders[0].pod_uid, plan.status.builders[1].pod_uid);
}

TEST(Election, NoHeldPodIsElectedForTypeWithoutCapacity) {
  SnapshotBuilder builder = Accepted();
  builder.Node({.name = "n2", .cpu_class = fakes::kAvx2, .pods = 0});
  builder.Pod({.name = "a", .held = true, .created = 98});
  builder.Pod({.name = "b", .held = true, .created = 99});
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].cpu_class, fakes::kAvx512);
}

BuilderStatus CapturedAt(SnapshotBuilder& builder, int finished) {
  BuilderStatus out = Failed(builder, 1, finished, "Captured");
  out.state = BuilderState::kCaptured;
  return out;
}

void AddMissed(SnapshotBuilder& builder, const std::string& revision, int started) {
  builder.Pod({.name = "missed",
               .node = "n1",
               .revision = revision,
               .created = started - 2,
               .started = started,
               .ready = started + 5,
               .annotations = {{"cachewarm.io/start", R"({"result":"miss"})"}}});
}

TEST(Election, MissingPodOfNewRevisionIsElected) {
  SnapshotBuilder builder = Accepted();
  builder.Bundle({.node = "n1", .published = 40, .active = {"n1"}});
  builder.status().builders = {CapturedAt(builder, 40)};
  AddMissed(builder, "r2", 90);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].pod_name, "missed");
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kElected);
}

TEST(Election, ChangedArgsWithoutAMissNeedNoBuild) {
  SnapshotBuilder builder = Accepted();
  builder.Bundle({.node = "n1", .published = 40, .active = {"n1"}});
  builder.status().builders = {CapturedAt(builder, 40)};
  builder.Pod({.name = "hit",
               .node = "n1",
               .revision = "r2",
               .created = 80,
               .started = 90,
               .ready = 95,
               .annotations = {{"cachewarm.io/start", R"({"result":"hit"})"}}});
  EXPECT_EQ(builder.Decide().status.builders[0].state, BuilderState::kCaptured);
}

TEST(Election, RebuildsAfterMissesAreTenMinutesApart) {
  SnapshotBuilder builder = Accepted();
  builder.Bundle({.node = "n1", .published = 40, .active = {"n1"}});
  builder.status().builders = {CapturedAt(builder, 40)};
  AddMissed(builder, "r1", 90);
  EXPECT_EQ(builder.Decide().status.builders[0].state, BuilderState::kCaptured);
  builder.Now(40 + 600);
  EXPECT_EQ(builder.Decide().status.builders[0].state, BuilderState::kElected);
}

TEST(Election, MissBeforeTheBundleCausesNoRebuild) {
  SnapshotBuilder builder = Accepted();
  builder.Bundle({.node = "n1", .published = 95, .active = {"n1"}});
  AddMissed(builder, "r2", 90);
  EXPECT_TRUE(builder.Decide().status.builders.empty());
}

}  // namespace
}  // namespace cachewarm::plan
