// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/builders/builders_fixture.h"

namespace cachewarm::plan {
namespace {

using api::BuilderState;
using api::BuilderStatus;
using fakes::At;
using fakes::SnapshotBuilder;

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

TEST(Attempts, LostBuilderIsReplacedWithoutCostingAnAttempt) {
  SnapshotBuilder builder = Accepted();
  builder.status().builders = {Failed(builder, 1, 100, "BuilderLost")};
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90});
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.builders[0].pod_name, "a");
  EXPECT_EQ(plan.status.builders[0].attempt, 1);
}

TEST(Attempts, NewRevisionResetsAttempts) {
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

TEST(Attempts, SettingsChangedDuringABuildDoNotResetAttempts) {
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

TEST(Attempts, OldRevisionDoesNotResetAttempts) {
  SnapshotBuilder builder = Accepted();
  builder.status().builders = {Failed(builder, 4, 95)};
  builder.Pod({.name = "a", .node = "n1", .revision = "r0", .created = 80, .started = 90});
  EXPECT_EQ(builder.Decide().status.builders[0].attempt, 4);
}

}  // namespace
}  // namespace cachewarm::plan
