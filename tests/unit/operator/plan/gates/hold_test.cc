// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::ReleaseOf;
using fakes::SnapshotBuilder;
using Names = std::vector<std::string>;

SnapshotBuilder Nodes(int count) {
  SnapshotBuilder builder;
  for (int i = 1; i <= count; ++i) {
    builder.Node({.name = "n" + std::to_string(i)});
  }
  builder.Accepted();
  return builder;
}

std::string ReasonFor(const SnapshotBuilder& builder, const std::string& pod = "p") {
  const Plan plan = builder.Decide();
  const GateRelease* release = ReleaseOf(plan, pod);
  return release == nullptr ? "held" : release->reason;
}

TEST(Gates, ReleasesWithoutPreferenceWhenAllNodesAreWarm) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1", "n2"}});
  builder.Pod({.name = "p", .held = true, .created = 97});
  const Plan plan = builder.Decide();
  const GateRelease* release = ReleaseOf(plan, "p");
  ASSERT_NE(release, nullptr);
  EXPECT_EQ(release->reason, "ReleasedWarm");
  EXPECT_TRUE(release->preferred.empty());
  EXPECT_TRUE(release->excluded.empty());
  EXPECT_DOUBLE_EQ(release->held_seconds, 3);
  EXPECT_EQ(release->event.reason, "ReleasedWarm");
  EXPECT_EQ(release->event.note, "pod released after 3 s");
}

TEST(Gates, HoldsWhileAnEligibleNodeFetches) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReasonFor(builder), "held");
}

// A warmup that overlaps another one sees the same pods.
TEST(Gates, PodOfAnotherWarmupIsIgnored) {
  for (const bool overlaps : {false, true}) {
    SnapshotBuilder builder = Nodes(1);
    builder.Bundle({.node = "n1", .active = {"n1"}});
    builder.Pod({.name = "other",
                 .held = true,
                 .injected = false,
                 .created = 97,
                 .annotations = {{std::string(api::kWarmupAnnotation), "first"}}});
    builder.Pod({.name = "own", .held = true, .created = 97});
    if (overlaps) {
      builder.in().others = {{.name = "first", .older = true, .labels = {{"app", "llama"}}}};
    }
    builder.Now(97 + 3600);
    const Plan plan = builder.Decide();
    EXPECT_EQ(ReleaseOf(plan, "other"), nullptr);
    EXPECT_EQ(fakes::AnnotationOf(plan, "other", std::string(api::kHeldUntilAnnotation)), nullptr);
    ASSERT_NE(ReleaseOf(plan, "own"), nullptr);
    EXPECT_EQ(ReleaseOf(plan, "own")->reason,
              overlaps ? "ReleasedHoldingDisabled" : "ReleasedAtDeadline");
  }
}

// Kept off the only node with capacity, it would wait forever.
TEST(Gates, CandidateWithoutCapacityMayUseOtherNodes) {
  SnapshotBuilder builder = Nodes(1);
  builder.Node({.name = "n2", .prepared = false});
  builder.Pod({.name = "a", .held = true, .created = 98});
  Plan plan = builder.Decide();
  ASSERT_NE(fakes::ReleaseOf(plan, "a"), nullptr);
  EXPECT_EQ(fakes::ReleaseOf(plan, "a")->excluded, std::vector<std::string>{"n2"});
  builder.status() = plan.status;
  builder.view("n1").free["pods"] = 0;
  builder.Now(101);
  plan = builder.Decide();
  ASSERT_NE(fakes::ReleaseOf(plan, "a"), nullptr);
  EXPECT_TRUE(fakes::ReleaseOf(plan, "a")->excluded.empty());
}

TEST(Gates, LastTenthOfNodesIsNotAwaited) {
  SnapshotBuilder builder = Nodes(11);
  Names active;
  for (int i = 1; i <= 10; ++i) {
    active.push_back("n" + std::to_string(i));
  }
  builder.Bundle({.node = "n1", .active = active});
  builder.Pod({.name = "p", .held = true, .created = 97});
  const Plan plan = builder.Decide();
  ASSERT_NE(ReleaseOf(plan, "p"), nullptr);
  EXPECT_EQ(ReleaseOf(plan, "p")->preferred.size(), 10U);
}

TEST(Gates, HoldsDuringBuildAndReleasesWhenBundleIsActive) {
  SnapshotBuilder builder = Nodes(1);
  builder.Pod({.name = "builder", .node = "n1", .created = 90, .started = 92});
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReasonFor(builder), "held");
  builder.Bundle({.node = "n1", .published = 99, .active = {}});
  EXPECT_EQ(ReasonFor(builder), "held");
  builder.reported("n1").bundles = {
      {.digest = fakes::DigestNamed("a"), .state = api::BundleState::kActive}};
  EXPECT_EQ(ReasonFor(builder), "ReleasedWarm");
}

TEST(Gates, ReleasesAtDeadlineWithPreferenceForWarmNodes) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Pod({.name = "p", .held = true, .created = 97});
  builder.Now(97 + 59);
  EXPECT_EQ(ReasonFor(builder), "held");
  EXPECT_LE(*builder.Decide().requeue_after, std::chrono::seconds(1));
  builder.Now(97 + 60);
  const Plan plan = builder.Decide();
  ASSERT_NE(ReleaseOf(plan, "p"), nullptr);
  EXPECT_EQ(ReleaseOf(plan, "p")->reason, "ReleasedAtDeadline");
  EXPECT_EQ(ReleaseOf(plan, "p")->preferred, Names{"n1"});
}

TEST(Gates, PreferenceIsAddedOnlyWhileANodeIsCold) {
  for (const bool withdrawn : {false, true}) {
    for (const Names& active : {Names{"n1"}, Names{"n1", "n2"}}) {
      SnapshotBuilder builder = Nodes(2);
      builder.Bundle({.node = "n1", .active = active});
      builder.Pod({.name = "p", .held = true, .created = 97});
      builder.warmup().spec.gate.mode = withdrawn ? api::GateMode::kNever : api::GateMode::kHold;
      builder.Now(97 + 60);
      const Plan plan = builder.Decide();
      ASSERT_NE(ReleaseOf(plan, "p"), nullptr);
      EXPECT_EQ(ReleaseOf(plan, "p")->reason,
                withdrawn ? "ReleasedHoldingDisabled" : "ReleasedAtDeadline");
      EXPECT_EQ(ReleaseOf(plan, "p")->preferred, active.size() == 1 ? Names{"n1"} : Names{});
    }
  }
}

struct FailureCase {
  const char* reason;
  const char* outcome;
};

class FailedFetch : public testing::TestWithParam<FailureCase> {};

TEST_P(FailedFetch, FailedFetchIsAwaitedOnlyIfRetryable) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1"});
  builder.reported("n1").bundles = {{.digest = fakes::DigestNamed("a"),
                                     .state = api::BundleState::kFailed,
                                     .reason = GetParam().reason}};
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReasonFor(builder), GetParam().outcome);
}

INSTANTIATE_TEST_SUITE_P(All, FailedFetch,
                         testing::Values(FailureCase{"FetchFailed", "held"},
                                         FailureCase{"OverByteLimit", "ReleasedNotWorthWaiting"},
                                         FailureCase{"DiskFull", "ReleasedNotWorthWaiting"},
                                         FailureCase{"VerifyFailed", "ReleasedNotWorthWaiting"}),
                         [](const auto& each) { return each.param.reason; });

TEST(Gates, FailingFetchIsNotAwaitedBesideWarmNode) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.reported("n2").bundles = {{.digest = fakes::DigestNamed("a"),
                                     .state = api::BundleState::kFailed,
                                     .reason = "FetchFailed"}};
  builder.Pod({.name = "p", .held = true, .created = 97});
  const Plan plan = builder.Decide();
  ASSERT_NE(ReleaseOf(plan, "p"), nullptr);
  EXPECT_EQ(ReleaseOf(plan, "p")->reason, "ReleasedWarm");
  EXPECT_EQ(ReleaseOf(plan, "p")->preferred, Names{"n1"});
}

TEST(Gates, NodeWithoutAgentIsNotAwaited) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1"});
  builder.view("n1").agent_ready = false;
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReasonFor(builder), "ReleasedNotWorthWaiting");
}

TEST(Gates, ReleasesWithoutCapacityForTheAutoscaler) {
  SnapshotBuilder builder = Nodes(1);
  builder.view("n1").free["pods"] = 0;
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReasonFor(builder), "ReleasedNoCapacity");
}

TEST(Gates, BuilderIsReleasedFirst) {
  SnapshotBuilder builder = Nodes(1);
  builder.view("n1").free["pods"] = 1;
  builder.Pod({.name = "a", .held = true, .created = 97});
  builder.Pod({.name = "b", .held = true, .created = 96});
  builder.Pod({.name = "c", .held = true, .created = 98});
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.releases.size(), 3U);
  EXPECT_EQ(plan.releases[0].pod->meta.name, "b");
  EXPECT_EQ(plan.releases[0].reason, "ReleasedForBuild");
  EXPECT_EQ(plan.releases[1].reason, "ReleasedNoCapacity");
  EXPECT_EQ(plan.releases[2].reason, "ReleasedNoCapacity");
}

TEST(Gates, CordonedNodeHasNoCapacity) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.node("n1").unschedulable = true;
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReasonFor(builder), "ReleasedNoCapacity");
}

TEST(Gates, ReleasesMatchCapacityOfWarmNodes) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.view("n1").free["pods"] = 2;
  builder.view("n2").agent_ready = false;  // stays cold
  for (int i = 0; i < 4; ++i) {
    builder.Pod({.name = "p" + std::to_string(i), .held = true, .created = 90 + i});
  }
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReleaseOf(plan, "p0")->reason, "ReleasedWarm");
  EXPECT_EQ(ReleaseOf(plan, "p0")->preferred, Names{"n1"});
  EXPECT_EQ(ReleaseOf(plan, "p1")->reason, "ReleasedWarm");
  EXPECT_EQ(ReleaseOf(plan, "p2")->reason, "ReleasedNotWorthWaiting");
}

TEST(Gates, UnboundReleasedPodsReserveCapacity) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.view("n1").free["pods"] = 1;
  builder.Pod({.name = "earlier", .created = 90});
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReasonFor(builder), "ReleasedNoCapacity");
}

TEST(Gates, PodWithAnotherGateReservesNoCapacity) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.view("n1").free["pods"] = 1;
  builder.Pod({.name = "queued", .created = 90, .other_gates = {"kueue.x-k8s.io/admission"}});
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReasonFor(builder), "ReleasedWarm");
}

TEST(Gates, UnusableNodeIsExcluded) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Node({.name = "bad", .agent = false, .prepared = false});
  builder.Pod({.name = "p", .held = true, .created = 97});
  const Plan plan = builder.Decide();
  ASSERT_NE(ReleaseOf(plan, "p"), nullptr);
  EXPECT_EQ(ReleaseOf(plan, "p")->excluded, Names{"bad"});
}

TEST(Gates, PodWithAnotherGateGetsExclusionWithoutPreference) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Node({.name = "bad", .agent = false, .prepared = false});
  builder.Pod({.name = "p", .held = true, .created = 97, .other_gates = {"example.com/gate"}});
  const Plan plan = builder.Decide();
  const GateRelease* release = ReleaseOf(plan, "p");
  ASSERT_NE(release, nullptr);
  EXPECT_EQ(release->reason, "ReleasedOtherGate");
  EXPECT_EQ(release->excluded, Names{"bad"});
  EXPECT_TRUE(release->preferred.empty());
}

// An autoscaler adds a fresh node only while pods could be scheduled to it.
TEST(Gates, NodeWithStartupTaintIsNotExcluded) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Node({.name = "fresh", .agent = false, .prepared = false});
  builder.node("fresh").taints = {{.key = "cachewarm.io/warming", .effect = "NoSchedule"}};
  builder.Pod({.name = "p", .held = true, .created = 97});
  const Plan plan = builder.Decide();
  ASSERT_NE(ReleaseOf(plan, "p"), nullptr);
  EXPECT_TRUE(ReleaseOf(plan, "p")->excluded.empty());
}

TEST(Gates, PodsOfSuspendedInjectionAvoidUnusableNodes) {
  SnapshotBuilder builder = Nodes(1);
  builder.Node({.name = "b1", .agent = false, .prepared = false});
  builder.Node({.name = "b2", .agent = false, .prepared = false});
  builder.Pod({.name = "p", .held = true, .created = 97});
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReleaseOf(plan, "p")->reason, "ReleasedHoldingDisabled");
  EXPECT_EQ(ReleaseOf(plan, "p")->excluded, (Names{"b1", "b2"}));
}

TEST(Gates, HundredsOfUnusableNodesAreExcluded) {
  SnapshotBuilder builder = Nodes(1);
  Names bad;
  for (int i = 100; i < 300; ++i) {
    bad.push_back("b" + std::to_string(i));
    builder.Node({.name = bad.back(), .agent = false, .prepared = false});
  }
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReleaseOf(builder.Decide(), "p")->excluded, bad);
}

TEST(Gates, PodsReleasedWithGroupAvoidUnusableNodes) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1"});
  builder.Node({.name = "bad", .agent = false, .prepared = false});
  const std::map<std::string, std::string> group = {{"jobset.sigs.k8s.io/jobset-name", "g"}};
  builder.Pod({.name = "free", .node = "n1", .created = 90, .labels = group});
  builder.Pod({.name = "p", .held = true, .created = 97, .labels = group});
  const Plan plan = builder.Decide();
  ASSERT_NE(ReleaseOf(plan, "p"), nullptr);
  EXPECT_EQ(ReleaseOf(plan, "p")->reason, "ReleasedWithGroup");
  EXPECT_EQ(ReleaseOf(plan, "p")->excluded, Names{"bad"});
}

// A rollout would wait forever beside an idle node.
TEST(Gates, OnlyNodeWithCapacityIsNotExcluded) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Node({.name = "bad", .agent = false, .prepared = false});
  builder.Pod({.name = "p", .held = true, .created = 97});
  builder.view("n1").free["pods"] = 0;
  const Plan plan = builder.Decide();
  ASSERT_NE(ReleaseOf(plan, "p"), nullptr);
  EXPECT_EQ(ReleaseOf(plan, "p")->reason, "ReleasedNoCapacity");
  EXPECT_TRUE(ReleaseOf(plan, "p")->excluded.empty());
  builder.view("bad").free["pods"] = 0;
  EXPECT_EQ(ReleaseOf(builder.Decide(), "p")->excluded, Names{"bad"}) << "it is held for n1";
}

TEST(Gates, LastNodeIsNotExcluded) {
  SnapshotBuilder builder = Nodes(1);
  builder.reported("n1").prepared.clear();
  builder.reported("n1").message = "mounted noexec";
  builder.Pod({.name = "p", .held = true, .created = 97});
  const Plan plan = builder.Decide();
  ASSERT_NE(ReleaseOf(plan, "p"), nullptr);
  EXPECT_TRUE(ReleaseOf(plan, "p")->excluded.empty());
}

struct ReleaseCase {
  const char* name;
  void (*change)(SnapshotBuilder&);
};

class ReleasingCondition : public testing::TestWithParam<ReleaseCase> {};

TEST_P(ReleasingCondition, ReleasesAtOnce) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Pod({.name = "p", .held = true, .created = 99});
  ASSERT_EQ(ReasonFor(builder), "held");
  GetParam().change(builder);
  EXPECT_EQ(ReasonFor(builder), "ReleasedHoldingDisabled");
}

INSTANTIATE_TEST_SUITE_P(
    All, ReleasingCondition,
    testing::Values(
        ReleaseCase{"deleted", [](SnapshotBuilder& b) { b.warmup().deleting = true; }},
        ReleaseCase{"paused", [](SnapshotBuilder& b) { b.warmup().spec.paused = true; }},
        ReleaseCase{"mode_off",
                    [](SnapshotBuilder& b) { b.warmup().spec.gate.mode = api::GateMode::kNever; }},
        ReleaseCase{"not_accepted", [](SnapshotBuilder& b) { b.in().workload.found = false; }}),
    [](const auto& each) { return each.param.name; });

TEST(Gates, DeletedPodIsIgnored) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Pod({.name = "p", .held = true, .created = 97, .deleting = true});
  EXPECT_EQ(ReasonFor(builder), "held");
}

TEST(Gates, HeldPodIsAnnotatedAfterTwoSeconds) {
  SnapshotBuilder builder = Nodes(2);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Pod({.name = "p", .held = true, .created = 99});
  const Plan early = builder.Decide();
  EXPECT_EQ(fakes::AnnotationOf(early, "p", "cachewarm.io/held-until"), nullptr);
  EXPECT_LE(*early.requeue_after, std::chrono::seconds(1));
  builder.Now(101);
  const Plan plan = builder.Decide();
  ASSERT_NE(fakes::AnnotationOf(plan, "p", "cachewarm.io/held-until"), nullptr);
  EXPECT_EQ(fakes::AnnotationOf(plan, "p", "cachewarm.io/held-until")->value,
            FormatTime(At(99 + 60)));
  EXPECT_TRUE(fakes::HasEvent(plan, "PodHeld"));
  builder.Pod({.name = "p",
               .held = true,
               .created = 99,
               .annotations = {{"cachewarm.io/held-until", "x"}}});
  EXPECT_FALSE(fakes::HasEvent(builder.Decide(), "PodHeld")) << "reported once";
}

TEST(Gates, HostnameLabelsAreUsed) {
  SnapshotBuilder builder = Nodes(2);
  builder.node("n1").meta.labels = {{"kubernetes.io/hostname", "host-1"}};
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.view("n2").agent_ready = false;
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReleaseOf(builder.Decide(), "p")->preferred, Names{"host-1"});
}

TEST(Gates, PreferenceNamesAtMostSixtyFourHosts) {
  SnapshotBuilder builder = Nodes(70);
  Names active;
  for (int i = 1; i <= 69; ++i) {
    active.push_back("n" + std::to_string(i));
  }
  builder.Bundle({.node = "n1", .active = active});
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReleaseOf(builder.Decide(), "p")->preferred.size(), 64U);
}

TEST(Gates, PodOfOldImageIsWarmByOldBundle) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1", .image = "server:0", .digest = "b", .active = {"n1"}});
  builder.Pod({.name = "p", .held = true, .image = "server:0", .created = 97});
  EXPECT_EQ(ReasonFor(builder), "ReleasedWarm");
}

TEST(Gates, ThousandsOfPodsAndNodesFitOnePlan) {
  SnapshotBuilder builder = Nodes(300);
  Names active;
  for (int i = 1; i <= 300; ++i) {
    active.push_back("n" + std::to_string(i));
  }
  builder.Bundle({.node = "n1", .active = active});
  for (int i = 0; i < 200; ++i) {
    builder.Pod({.name = "p" + std::to_string(i), .held = true, .created = 95});
  }
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.releases.size(), 200U);
  for (const GateRelease& release : plan.releases) {
    EXPECT_EQ(release.reason, "ReleasedWarm");
  }
}

}  // namespace
}  // namespace cachewarm::plan
