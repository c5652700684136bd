// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using api::BuilderState;
using api::BuilderStatus;
using fakes::At;
using fakes::HasEvent;
using fakes::SnapshotBuilder;

SnapshotBuilder Accepted(int nodes = 1) {
  SnapshotBuilder builder;
  for (int i = 1; i <= nodes; ++i) {
    builder.Node({.name = "n" + std::to_string(i)});
  }
  builder.Accepted();
  return builder;
}

const BuilderStatus* BuilderOf(const Plan& plan, const std::string& key) {
  for (const BuilderStatus& each : plan.status.builders) {
    if (each.key == key) {
      return &each;
    }
  }
  return nullptr;
}

BuilderStatus Failed(SnapshotBuilder& builder, int attempt, int finished,
                     const std::string& reason = "BuilderTimeout") {
  return {.key = builder.Key("n1"),
          .gpu_type = "cpu",
          .cpu_class = fakes::kAvx512,
          .image = "server:1",
          .revision = "r1",
          .pod_uid = "uid-before",
          .pod_name = "before",
          .node = "n1",
          .state = BuilderState::kFailed,
          .attempt = attempt,
          .elected_time = At(finished - 1),
          .finished_time = At(finished),
          .reason = reason,
          .message = "last message"};
}

// ---- first pods ---------------------------------------------------------------------------------

TEST(Builders, NoBuilderBeforeAPodStarts) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "a", .node = "n1", .created = 90});
  EXPECT_TRUE(builder.Decide().status.builders.empty());
}

TEST(Builders, FirstStartedPodIsElectedAndCaptureRequested) {
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

TEST(Builders, SimultaneousStartsAreOrderedByUid) {
  SnapshotBuilder builder = Accepted(2);
  builder.Pod({.name = "b", .node = "n1", .created = 80, .started = 95});
  builder.Pod({.name = "a", .node = "n2", .created = 85, .started = 95});
  EXPECT_EQ(builder.Decide().status.builders[0].pod_name, "a");
}

TEST(Builders, EachTypeAndClassHasItsOwnBuilder) {
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

TEST(Builders, NodeWithUnknownFactsBuildsNothing) {
  SnapshotBuilder builder = Accepted();
  builder.cache("n1").status.node.cpu_class = "../../etc";
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  EXPECT_TRUE(builder.Decide().status.builders.empty());
}

TEST(Builders, NoElectionWhilePausedOrNotAccepted) {
  SnapshotBuilder paused = Accepted();
  paused.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  paused.warmup().spec.paused = true;
  EXPECT_TRUE(paused.Decide().status.builders.empty());
  SnapshotBuilder refused = Accepted();
  refused.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  refused.in().namespace_labels = {{"pod-security.kubernetes.io/enforce", "restricted"}};
  EXPECT_TRUE(refused.Decide().status.builders.empty());
}

TEST(Builders, KeyWithBundleNeedsNoBuilder) {
  SnapshotBuilder builder = Accepted();
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  EXPECT_TRUE(builder.Decide().status.builders.empty());
}

TEST(Builders, BundleWithoutNativeCodeServesOtherCpuClass) {
  SnapshotBuilder builder = Accepted();
  builder.Node({.name = "n2", .cpu_class = fakes::kAvx2});
  builder.Bundle({.node = "n1", .native = false, .active = {"n1"}});
  builder.Pod({.name = "a", .node = "n2", .created = 80, .started = 90});
  const Plan plan = builder.Decide();
  EXPECT_TRUE(plan.status.builders.empty());
  ASSERT_NE(fakes::EntriesOf(plan, "n2"), nullptr);
  EXPECT_EQ(fakes::EntriesOf(plan, "n2")->spec.warmups[0].bundles.size(), 1U);
}

TEST(Builders, NativeBundleServesOnlyItsCpuClass) {
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

// ---- held pods ----------------------------------------------------------------------------------

TEST(Builders, OldestHeldPodIsReleasedToNodesOfDueType) {
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

TEST(Builders, PodWithAnotherGateIsNotElected) {
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

TEST(Builders, OneHeldPodPerDueTypeIsReleased) {
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

TEST(Builders, CandidateIsElectedWhenItsContainerStarts) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "a", .held = true, .created = 98});
  builder.status() = builder.Decide().status;
  builder.Pod({.name = "a", .node = "n1", .created = 98, .started = 103});
  builder.Now(104);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].node, "n1");
  EXPECT_EQ(plan.status.builders[0].attempt, 1);
  EXPECT_EQ(fakes::EntriesOf(plan, "n1")->spec.captures.size(), 1U);
}

TEST(Builders, EarlierStartedPodReplacesCandidate) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "a", .held = true, .created = 98});
  builder.status() = builder.Decide().status;
  builder.Pod({.name = "a", .created = 98});
  builder.Pod({.name = "slipped", .node = "n1", .created = 99, .started = 101});
  builder.Now(104);
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].pod_name, "slipped");
}

TEST(Builders, LostReleaseOfCandidateIsRepeated) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "a", .held = true, .created = 98});
  builder.status() = builder.Decide().status;
  builder.Now(101);
  const Plan plan = builder.Decide();
  ASSERT_NE(fakes::ReleaseOf(plan, "a"), nullptr);
  EXPECT_EQ(plan.status.builders[0].attempt, 1);
}

TEST(Builders, DeletedCandidateIsReplacedAtOnce) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "a", .held = true, .created = 98});
  builder.Pod({.name = "b", .held = true, .created = 99});
  builder.status() = builder.Decide().status;
  std::erase_if(builder.in().pods, [](const auto& pod) { return pod->meta.name == "a"; });
  builder.Now(101);
  const Plan plan = builder.Decide();
  ASSERT_NE(fakes::ReleaseOf(plan, "b"), nullptr);
  EXPECT_EQ(plan.status.builders[0].pod_name, "b");
  EXPECT_EQ(plan.status.builders[0].attempt, 1) << "the build itself did not fail";
  EXPECT_TRUE(plan.builds_finished.empty());
}

TEST(Builders, CandidateOnAnotherTypeBuildsForThatType) {
  SnapshotBuilder builder = Accepted();
  builder.Node({.name = "n2", .cpu_class = fakes::kAvx2});
  builder.Pod({.name = "a", .held = true, .created = 98});
  builder.status() = builder.Decide().status;
  ASSERT_EQ(builder.status().builders.size(), 1U);
  const bool for_n1 = builder.status().builders[0].key == builder.Key("n1");
  const std::string other = for_n1 ? "n2" : "n1";
  builder.Pod({.name = "a", .node = other, .created = 98, .started = 102});
  builder.Now(103);
  const Plan plan = builder.Decide();
  ASSERT_NE(BuilderOf(plan, builder.Key(other)), nullptr);
  EXPECT_EQ(BuilderOf(plan, builder.Key(other))->node, other);
  EXPECT_EQ(BuilderOf(plan, builder.Key(for_n1 ? "n1" : "n2"))->state, BuilderState::kFailed);
}

TEST(Builders, CandidateFailsAfterPendingSeconds) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "a", .held = true, .created = 98});
  builder.status() = builder.Decide().status;
  builder.Pod({.name = "a", .node = "n1", .created = 98, .words = "ErrImagePull"});
  builder.Now(100 + 599);
  const Plan waiting = builder.Decide();
  EXPECT_EQ(waiting.status.builders[0].state, BuilderState::kElected);
  EXPECT_EQ(waiting.requeue_after, std::chrono::seconds(1));
  builder.Now(100 + 600);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kFailed);
  EXPECT_EQ(plan.status.builders[0].reason, "BuilderPending");
  EXPECT_NE(plan.status.builders[0].message.find("ErrImagePull"), std::string::npos);
}

TEST(Builders, NoHeldPodIsElectedForTypeWithoutCapacity) {
  SnapshotBuilder builder = Accepted();
  builder.Node({.name = "n2", .cpu_class = fakes::kAvx2, .pods = 0});
  builder.Pod({.name = "a", .held = true, .created = 98});
  builder.Pod({.name = "b", .held = true, .created = 99});
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].cpu_class, fakes::kAvx512);
}

// ---- backoff ------------------------------------------------------------------------------------

struct BackoffCase {
  const char* name;
  int attempt;
  int wait;  // seconds until the next build may begin
};

class Backoff : public testing::TestWithParam<BackoffCase> {};

TEST_P(Backoff, SpacesAttempts) {
  SnapshotBuilder builder = Accepted();
  builder.status().builders = {Failed(builder, GetParam().attempt, 100)};
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  builder.Now(100 + GetParam().wait - 1);
  builder.in().dry_run.time = builder.in().now;
  const Plan early = builder.Decide();
  EXPECT_EQ(early.status.builders[0].state, BuilderState::kFailed);
  EXPECT_LE(*early.requeue_after, std::chrono::seconds(1));
  builder.Now(100 + GetParam().wait);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kElected);
  EXPECT_EQ(plan.status.builders[0].attempt, GetParam().attempt + 1);
}

INSTANTIATE_TEST_SUITE_P(All, Backoff,
                         testing::Values(BackoffCase{"first", 1, 10}, BackoffCase{"second", 2, 20},
                                         BackoffCase{"third", 3, 40},
                                         BackoffCase{"exhausted", 4, 600},
                                         BackoffCase{"after", 5, 1200}),
                         [](const auto& each) { return each.param.name; });

TEST(Builders, LostBuilderIsReplacedWithoutCostingAnAttempt) {
  SnapshotBuilder builder = Accepted();
  builder.status().builders = {Failed(builder, 1, 100, "BuilderLost")};
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].pod_name, "a");
  EXPECT_EQ(plan.status.builders[0].attempt, 1);
}

TEST(Builders, NewRevisionResetsAttempts) {
  SnapshotBuilder builder = Accepted();
  builder.status().builders = {Failed(builder, 4, 50)};
  builder.Pod({.name = "a", .node = "n1", .revision = "r2", .created = 80, .started = 90});
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].attempt, 1);
  EXPECT_EQ(plan.status.builders[0].revision, "r2");
}

struct SettingCase {
  const char* name;
  void (*change)(api::WarmupSpec&);
  bool resets_attempts;
};

class BuildSettings : public testing::TestWithParam<SettingCase> {};

// Four attempts failed under unchanged settings.
TEST_P(BuildSettings, ChangedSettingsResetAttempts) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  builder.status() = builder.Decide().status;
  BuilderStatus& last = builder.status().builders.at(0);
  last.state = BuilderState::kFailed;
  last.attempt = 4;
  last.finished_time = At(100);
  builder.Now(101);
  EXPECT_EQ(builder.Decide().status.builders[0].attempt, 4);
  GetParam().change(builder.warmup().spec);
  const BuilderStatus next = builder.Decide().status.builders[0];
  EXPECT_EQ(next.attempt, GetParam().resets_attempts ? 1 : 4);
  EXPECT_EQ(next.state,
            GetParam().resets_attempts ? BuilderState::kElected : BuilderState::kFailed);
  last.settings_hash.clear();
  EXPECT_EQ(builder.Decide().status.builders[0], last) << "an older version recorded none";
}

INSTANTIATE_TEST_SUITE_P(
    All, BuildSettings,
    testing::Values(
        SettingCase{"timeout", [](api::WarmupSpec& s) { s.compile.timeout_seconds = 3600; }, true},
        SettingCase{"pending", [](api::WarmupSpec& s) { s.compile.pending_seconds = 900; }, true},
        SettingCase{"settle", [](api::WarmupSpec& s) { s.compile.settle_seconds = 30; }, true},
        SettingCase{"caches", [](api::WarmupSpec& s) { s.caches = {{.name = "triton"}}; }, true},
        SettingCase{"node_selector",
                    [](api::WarmupSpec& s) {
                      s.node_selector = {{"kubernetes.io/hostname", "n1"}};
                    },
                    true},
        SettingCase{"gpu_types", [](api::WarmupSpec& s) { s.gpu_types = {"cpu"}; }, true},
        SettingCase{"retain", [](api::WarmupSpec& s) { s.retain = 4; }, false},
        SettingCase{"gate", [](api::WarmupSpec& s) { s.gate.max_hold_seconds = 5; }, false}),
    [](const auto& each) { return each.param.name; });

TEST(Builders, SettingsChangedDuringABuildDoNotResetAttempts) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  builder.status() = builder.Decide().status;
  builder.warmup().spec.compile.timeout_seconds = 20;
  builder.Now(112);
  builder.status() = builder.Decide().status;
  EXPECT_EQ(builder.status().builders.at(0).reason, "BuilderTimeout");
  builder.Now(113);
  EXPECT_EQ(builder.Decide().status.builders[0].state, BuilderState::kFailed);
}

TEST(Builders, OldRevisionDoesNotResetAttempts) {
  SnapshotBuilder builder = Accepted();
  builder.status().builders = {Failed(builder, 4, 95)};
  builder.Pod({.name = "a", .node = "n1", .revision = "r0", .created = 80, .started = 90});
  EXPECT_EQ(builder.Decide().status.builders[0].attempt, 4);
}

// ---- builds after a miss ------------------------------------------------------------------------

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

TEST(Builders, MissingPodOfNewRevisionIsElected) {
  SnapshotBuilder builder = Accepted();
  builder.Bundle({.node = "n1", .published = 40, .active = {"n1"}});
  builder.status().builders = {CapturedAt(builder, 40)};
  AddMissed(builder, "r2", 90);
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].pod_name, "missed");
  EXPECT_EQ(plan.status.builders[0].state, BuilderState::kElected);
}

TEST(Builders, ChangedArgsWithoutAMissNeedNoBuild) {
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

TEST(Builders, RebuildsAfterMissesAreTenMinutesApart) {
  SnapshotBuilder builder = Accepted();
  builder.Bundle({.node = "n1", .published = 40, .active = {"n1"}});
  builder.status().builders = {CapturedAt(builder, 40)};
  AddMissed(builder, "r1", 90);
  EXPECT_EQ(builder.Decide().status.builders[0].state, BuilderState::kCaptured);
  builder.Now(40 + 600);
  EXPECT_EQ(builder.Decide().status.builders[0].state, BuilderState::kElected);
}

TEST(Builders, MissBeforeTheBundleCausesNoRebuild) {
  SnapshotBuilder builder = Accepted();
  builder.Bundle({.node = "n1", .published = 95, .active = {"n1"}});
  AddMissed(builder, "r2", 90);
  EXPECT_TRUE(builder.Decide().status.builders.empty());
}

TEST(Builders, ReplanningAfterElectionAddsNothing) {
  SnapshotBuilder builder = Accepted();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  builder.status() = builder.Decide().status;
  const Plan again = builder.Decide();
  EXPECT_FALSE(HasEvent(again, "BuilderElected"));
  EXPECT_EQ(again.status.builders, builder.status().builders);
}

}  // namespace
}  // namespace cachewarm::plan
