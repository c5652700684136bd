// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/operator/plan/builders/builders_fixture.h"

namespace cachewarm::plan {
namespace {

using api::BuilderState;
using fakes::HasEvent;
using fakes::SnapshotBuilder;

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
