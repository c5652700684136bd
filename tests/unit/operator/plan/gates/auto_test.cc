// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/fakes/snapshot_builder.h"

// Mode Auto: pods are held only while waiting is worthwhile.
namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::ReleaseOf;
using fakes::SnapshotBuilder;

SnapshotBuilder Nodes(int count) {
  SnapshotBuilder builder;
  builder.warmup().spec.gate.mode = api::GateMode::kAuto;
  for (int i = 1; i <= count; ++i) {
    builder.Node({.name = "n" + std::to_string(i)});
  }
  builder.Accepted();
  return builder;
}

void Measured(SnapshotBuilder& builder, api::StartResult result, double seconds) {
  builder.status().starts.recent.push_back({.pod_uid = "old",
                                            .key = builder.Key("n1"),
                                            .gpu_type = "cpu",
                                            .result = result,
                                            .start_seconds = seconds});
}

// A bundle of 1,000 bytes that n1 fetches: `done` of them in `seconds`.
void Fetching(SnapshotBuilder& builder, int done, double seconds) {
  builder.Bundle({.node = "n1"});
  builder.reported("n1").bundles = {{.digest = fakes::DigestNamed("a"),
                                     .state = api::BundleState::kFetching,
                                     .bytes_done = done,
                                     .fetch_seconds = seconds}};
}

std::string ReasonFor(const SnapshotBuilder& builder, const std::string& pod = "p") {
  const Plan plan = builder.Decide();
  const GateRelease* release = ReleaseOf(plan, pod);
  return release == nullptr ? "held" : release->reason;
}

struct FetchCase {
  const char* name;
  int held_for;
  int done;
  double seconds;
  double cold;
  double warm;
  const char* outcome;
};

class Fetches : public testing::TestWithParam<FetchCase> {};

TEST_P(Fetches, FetchIsAwaitedWhileShorterThanGain) {
  const FetchCase& each = GetParam();
  SnapshotBuilder builder = Nodes(1);
  Fetching(builder, each.done, each.seconds);
  if (each.cold > 0) {
    Measured(builder, api::StartResult::kCold, each.cold);
  }
  if (each.warm > 0) {
    Measured(builder, api::StartResult::kHit, each.warm);
  }
  builder.Pod({.name = "p", .held = true, .created = 100 - each.held_for});
  EXPECT_EQ(ReasonFor(builder), each.outcome);
}

INSTANTIATE_TEST_SUITE_P(
    All, Fetches,
    testing::Values(FetchCase{"fast", 1, 500, 5, 20, 5, "held"},
                    FetchCase{"slow", 1, 100, 5, 20, 5, "ReleasedNotWorthWaiting"},
                    FetchCase{"fast_but_long_held", 12, 500, 5, 20, 5, "ReleasedNotWorthWaiting"},
                    FetchCase{"nothing_measured_fast", 1, 500, 5, 0, 0, "held"},
                    FetchCase{"nothing_measured_slow", 1, 100, 5, 0, 0, "ReleasedNotWorthWaiting"},
                    FetchCase{"nothing_measured_long_held", 25, 500, 5, 0, 0,
                              "ReleasedNotWorthWaiting"},
                    FetchCase{"no_warm_start_yet", 1, 500, 5, 6, 0, "ReleasedNotWorthWaiting"},
                    FetchCase{"warm_as_slow_as_cold", 0, 900, 1, 20, 20, "ReleasedNotWorthWaiting"},
                    FetchCase{"not_begun", 1, 0, 0, 20, 5, "held"}),
    [](const auto& each) { return each.param.name; });

TEST(AutoGates, StalledFetchIsAwaitedUntilGainIsSpent) {
  SnapshotBuilder builder = Nodes(1);
  Fetching(builder, 500, 5);
  Measured(builder, api::StartResult::kCold, 20);
  Measured(builder, api::StartResult::kHit, 5);
  builder.Pod({.name = "p", .held = true, .created = 100});
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReleaseOf(plan, "p"), nullptr);
  // The gain is 15 s and 6 s are left.
  EXPECT_LE(*plan.requeue_after, std::chrono::seconds(9));
  builder.Now(109);
  EXPECT_EQ(ReasonFor(builder), "ReleasedNotWorthWaiting");
}

TEST(AutoGates, UnknownBuildIsNotAwaited) {
  SnapshotBuilder builder = Nodes(1);
  builder.Pod({.name = "builder", .node = "n1", .created = 90, .started = 92});
  builder.Pod({.name = "p", .held = true, .created = 97});
  EXPECT_EQ(ReasonFor(builder), "ReleasedNotWorthWaiting");
}

TEST(AutoGates, NearlyFinishedBuildIsAwaited) {
  SnapshotBuilder builder = Nodes(1);
  builder.warmup().spec.compile.settle_seconds = 2;
  Measured(builder, api::StartResult::kCold, 60);
  Measured(builder, api::StartResult::kHit, 20);
  builder.Pod({.name = "builder", .node = "n1", .created = 90, .started = 92});
  builder.Pod({.name = "p", .held = true, .created = 100});
  EXPECT_EQ(ReasonFor(builder), "ReleasedNotWorthWaiting") << "59 s left, 40 s gain";
  builder.Now(125);
  builder.Pod({.name = "p", .held = true, .created = 125});
  EXPECT_EQ(ReasonFor(builder), "held") << "34 s are left";
}

TEST(AutoGates, ReadyBuilderIsAwaitedWithoutMeasurements) {
  SnapshotBuilder builder = Nodes(1);
  builder.warmup().spec.compile.settle_seconds = 2;
  builder.Pod({.name = "builder", .node = "n1", .created = 60, .started = 62, .ready = 99});
  builder.Pod({.name = "p", .held = true, .created = 100});
  EXPECT_EQ(ReasonFor(builder), "held");
}

TEST(AutoGates, LateBuildIsGivenUpBeforeGainIsSpent) {
  SnapshotBuilder builder = Nodes(1);
  builder.warmup().spec.compile.settle_seconds = 2;
  Measured(builder, api::StartResult::kCold, 60);
  Measured(builder, api::StartResult::kHit, 20);
  builder.Pod({.name = "builder", .node = "n1", .created = 30, .started = 30});
  builder.Pod({.name = "p", .held = true, .created = 90});
  builder.Now(97);  // expected end of the build
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReleaseOf(plan, "p"), nullptr);
  builder.Now(112);
  EXPECT_EQ(ReasonFor(builder), "held") << "held 22 s, late by 15 s";
  builder.Now(114);
  EXPECT_EQ(ReasonFor(builder), "ReleasedNotWorthWaiting") << "held 24 s, late by 17 s";
}

TEST(AutoGates, WarmNodeWithCapacityIsTakenAtOnce) {
  SnapshotBuilder builder = Nodes(5);
  builder.Bundle({.node = "n1", .active = {"n1"}});
  builder.Pod({.name = "p", .held = true, .created = 100});
  const Plan plan = builder.Decide();
  ASSERT_NE(ReleaseOf(plan, "p"), nullptr);
  EXPECT_EQ(ReleaseOf(plan, "p")->reason, "ReleasedWarm");
  EXPECT_EQ(ReleaseOf(plan, "p")->preferred, std::vector<std::string>{"n1"});
}

TEST(AutoGates, HeldPodsMatchCapacityOfWarmingNode) {
  SnapshotBuilder builder = Nodes(1);
  Fetching(builder, 500, 5);
  builder.view("n1").free["pods"] = 2;
  for (const char* name : {"p1", "p2", "p3"}) {
    builder.Pod({.name = name, .held = true, .created = 100});
  }
  EXPECT_EQ(ReasonFor(builder, "p1"), "held");
  EXPECT_EQ(ReasonFor(builder, "p2"), "held");
  EXPECT_EQ(ReasonFor(builder, "p3"), "ReleasedNoCapacity") << "the autoscaler must see it";
}

TEST(AutoGates, EarlierFetchSlotsCountInForecast) {
  SnapshotBuilder builder = Nodes(5);
  builder.Bundle({.node = "n1"});
  builder.status().bundles[0].bytes = 20'000'000;  // one second at the default rate
  builder.in().settings.fetch_nodes_max = 1;
  Measured(builder, api::StartResult::kCold, 8);
  Measured(builder, api::StartResult::kHit, 1);
  for (const char* id : {"1", "2", "3", "4", "5"}) {
    builder.view(std::string("n") + id).free["pods"] = 1;
    builder.Pod({.name = std::string("p") + id, .held = true, .created = 100});
  }
  const Plan plan = builder.Decide();
  // A slot takes 2 s with activation and the gain is 7 s: the fourth and fifth fetch end too late.
  EXPECT_EQ(plan.releases.size(), 2U);
  for (const GateRelease& release : plan.releases) {
    EXPECT_EQ(release.reason, "ReleasedNotWorthWaiting");
  }
  builder.in().settings.fetch_nodes_max = 5;
  EXPECT_TRUE(builder.Decide().releases.empty()) << "all fetch at once";
}

TEST(AutoGates, UnreachableStoreIsNotAwaited) {
  SnapshotBuilder builder = Nodes(1);
  builder.Bundle({.node = "n1"});
  builder.reported("n1").bundles = {{.digest = fakes::DigestNamed("a"),
                                     .state = api::BundleState::kFailed,
                                     .reason = "FetchFailed"}};
  builder.Pod({.name = "p", .held = true, .created = 100});
  EXPECT_EQ(ReasonFor(builder), "ReleasedNotWorthWaiting");
}

TEST(AutoGates, WaitPastDeadlineIsNotStarted) {
  SnapshotBuilder builder = Nodes(1);
  Fetching(builder, 500, 5);  // 6 s are left
  builder.warmup().spec.gate.max_hold_seconds = 5;
  builder.Pod({.name = "p", .held = true, .created = 100});
  EXPECT_EQ(ReasonFor(builder), "ReleasedNotWorthWaiting");
}

}  // namespace
}  // namespace cachewarm::plan
