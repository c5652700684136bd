// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/gates/hold_deadline.h"

#include <gtest/gtest.h>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::SnapshotBuilder;
using std::chrono::seconds;

const std::map<std::string, std::string> kReleased = {{"cachewarm.io/held-seconds", "3.000"}};

class HoldDeadline : public testing::Test {
 protected:
  WallTime DeadlineOf(const std::string& name) {
    const HoldDeadlines deadlines(builder_.in().pods, seconds(60));
    for (const auto& pod : builder_.in().pods) {
      if (pod->meta.name == name) {
        return deadlines.DeadlineOf(*pod);
      }
    }
    return {};
  }

  SnapshotBuilder builder_;
};

TEST_F(HoldDeadline, BudgetBeginsWithFirstHeldPodOfRevision) {
  builder_.Pod({.name = "a", .held = true, .created = 100});
  builder_.Pod({.name = "b", .held = true, .created = 140});
  EXPECT_EQ(DeadlineOf("a"), At(160));
  EXPECT_EQ(DeadlineOf("b"), At(160));
}

TEST_F(HoldDeadline, ReleasedPodsUseBudget) {
  builder_.Pod({.name = "a", .node = "n1", .created = 100, .annotations = kReleased});
  builder_.Pod({.name = "b", .held = true, .created = 155});
  builder_.Pod({.name = "c", .held = true, .created = 400});
  EXPECT_EQ(DeadlineOf("b"), At(160));
  EXPECT_EQ(DeadlineOf("c"), At(160)) << "the rollout still goes on";
}

TEST_F(HoldDeadline, AnnotatedDeadlineOutlivesFirstPod) {
  builder_.Pod({.name = "b",
                .held = true,
                .created = 140,
                .annotations = {{"cachewarm.io/held-until", FormatTime(At(160))}}});
  builder_.Pod({.name = "c",
                .held = true,
                .created = 141,
                .annotations = {{"cachewarm.io/held-until", FormatTime(At(900))}}});
  EXPECT_EQ(DeadlineOf("b"), At(160));
  EXPECT_EQ(DeadlineOf("c"), At(200)) << "an annotation does not extend it";
}

TEST_F(HoldDeadline, UnheldPodsUseNoBudget) {
  builder_.Pod({.name = "a", .node = "n1", .created = 100});
  builder_.Pod({.name = "b", .held = true, .created = 140});
  EXPECT_EQ(DeadlineOf("b"), At(200));
}

TEST_F(HoldDeadline, PodsReleasedAtOnceUseNoBudget) {
  builder_.Pod({.name = "builder",
                .node = "n1",
                .created = 100,
                .annotations = {{"cachewarm.io/held-seconds", "0.214"},
                                {"cachewarm.io/released", "ReleasedForBuild"}}});
  builder_.Pod({.name = "b", .held = true, .created = 140});
  EXPECT_EQ(DeadlineOf("b"), At(200));
}

TEST_F(HoldDeadline, UnparsableAnnotationIsIgnored) {
  builder_.Pod({.name = "a",
                .node = "n1",
                .created = 100,
                .annotations = {{"cachewarm.io/held-seconds", "long"}}});
  builder_.Pod({.name = "b", .held = true, .created = 140});
  EXPECT_EQ(DeadlineOf("b"), At(200));
}

TEST_F(HoldDeadline, EachRevisionHasItsOwnBudget) {
  builder_.Pod({.name = "a", .held = true, .revision = "r1", .created = 100});
  builder_.Pod({.name = "b", .held = true, .revision = "r2", .created = 140});
  EXPECT_EQ(DeadlineOf("b"), At(200));
}

TEST_F(HoldDeadline, TenMinuteGapStartsNewBudget) {
  builder_.Pod({.name = "a", .node = "n1", .created = 100, .annotations = kReleased});
  builder_.Pod({.name = "b", .held = true, .created = 100 + 599});
  EXPECT_EQ(DeadlineOf("b"), At(160));
  builder_.Pod({.name = "b", .held = true, .created = 100 + 600});
  EXPECT_EQ(DeadlineOf("b"), At(760));
}

TEST_F(HoldDeadline, PodCreatedAfterTheOthersWereReadStartsNewBudgetAfterTheGapToo) {
  builder_.Pod({.name = "a", .node = "n1", .created = 100, .annotations = kReleased});
  const HoldDeadlines deadlines(builder_.in().pods, seconds(60));
  builder_.Pod({.name = "b", .held = true, .created = 100 + 599});
  EXPECT_EQ(deadlines.DeadlineOf(*builder_.in().pods.back()), At(160));
  builder_.Pod({.name = "b", .held = true, .created = 100 + 600});
  EXPECT_EQ(deadlines.DeadlineOf(*builder_.in().pods.back()), At(760));
}

TEST_F(HoldDeadline, BuilderJobsUseNoBudget) {
  builder_.Pod({.name = "a", .created = 50, .annotations = kReleased, .job = "j"});
  builder_.Pod({.name = "b", .held = true, .created = 100});
  EXPECT_EQ(DeadlineOf("b"), At(160));
}

TEST_F(HoldDeadline, BudgetIsAtMostHalfOfProgressDeadline) {
  api::CacheWarmup warmup;
  warmup.spec.gate.max_hold_seconds = 60;
  EXPECT_EQ(MaxHold(warmup, {}), seconds(60));
  EXPECT_EQ(MaxHold(warmup, {.progress_deadline = seconds(600)}), seconds(60));
  EXPECT_EQ(MaxHold(warmup, {.progress_deadline = seconds(50)}), seconds(25));
}

TEST_F(HoldDeadline, BudgetLeavesTimeForColdStart) {
  api::CacheWarmup warmup;
  warmup.spec.gate.max_hold_seconds = 60;
  warmup.status.starts.cold_median_seconds = 20;
  EXPECT_EQ(MaxHold(warmup, {}), seconds(60));
  EXPECT_EQ(MaxHold(warmup, {.progress_deadline = seconds(600)}), seconds(60));
  EXPECT_EQ(MaxHold(warmup, {.progress_deadline = seconds(90)}), seconds(45));
  EXPECT_EQ(MaxHold(warmup, {.progress_deadline = seconds(70)}), seconds(30));
  EXPECT_EQ(MaxHold(warmup, {.progress_deadline = seconds(30)}), seconds(0));
}

TEST_F(HoldDeadline, NewLeaderComputesSameDeadline) {
  builder_.Node({.name = "n1"}).Node({.name = "n2"}).Accepted();
  builder_.Bundle({.node = "n1", .active = {"n1"}});
  for (int i = 0; i < 5; ++i) {
    builder_.Pod({.name = "p" + std::to_string(i), .held = true, .created = 60 + 10 * i});
  }
  builder_.Now(119);
  EXPECT_TRUE(builder_.Decide().releases.empty());
  builder_.Now(120);
  const Plan plan = builder_.Decide();
  EXPECT_EQ(plan.releases.size(), 5U);
  for (const GateRelease& release : plan.releases) {
    EXPECT_EQ(release.reason, "ReleasedAtDeadline");
  }
}

}  // namespace
}  // namespace cachewarm::plan
