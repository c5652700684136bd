// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_cluster.h"

// Holding on a virtual clock: only while worthwhile, never forever, never slower than without
// cachewarm.
namespace cachewarm::sim {
namespace {

constexpr int kLong = 2000;

class EveryGate : public testing::TestWithParam<int> {
 protected:
  SimSetup Seeded(api::GateMode mode = api::GateMode::kAuto) const {
    return {.seed = static_cast<uint32_t>(GetParam()), .mode = mode};
  }
};

SimCluster Accepted(const SimSetup& setup, bool with_cachewarm = true) {
  SimCluster cluster(setup);
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  cluster.OperatorDown(!with_cachewarm);
  cluster.AddNode({.name = "n1"});
  cluster.AddNode({.name = "n2"});
  cluster.AddNode({.name = "n3", .cpu_class = fakes::kAvx2});
  cluster.RunSeconds(5);
  return cluster;
}

// Runs a history of scalings and rollouts, equal for equal seeds; returns the seconds until the
// last Ready of each step.
std::vector<int> Script(uint32_t seed, SimCluster& cluster) {
  std::mt19937 random(seed * 7919U);
  std::vector<int> out;
  int revision = 1;
  for (int step = 0; step < 8; ++step) {
    if (random() % 2 == 0) {
      ++revision;
      cluster.Rollout("r" + std::to_string(revision), "server:" + std::to_string(random() % 3));
    } else {
      cluster.Scale(1 + static_cast<int>(random() % 12));
    }
    if (random() % 3 == 0) {
      cluster.AddNode({.name = "x" + std::to_string(step)});
    }
    const int before = cluster.now();
    out.push_back(cluster.UntilReady(kLong).value_or(before + kLong) - before);
    cluster.RunSeconds(static_cast<int>(random() % 60));
  }
  return out;
}

TEST_P(EveryGate, AutoModeDelaysNoRollout) {
  const auto seed = static_cast<uint32_t>(GetParam());
  std::mt19937 random(seed);
  SimSetup setup = Seeded();
  setup.pods_per_second = 20;
  setup.cold_seconds = 5 + static_cast<int>(random() % 36);
  setup.warm_seconds = 1 + static_cast<int>(random() % static_cast<uint32_t>(setup.cold_seconds));
  setup.fetch_seconds = 1 + static_cast<int>(random() % 40);
  SimCluster with_cache = Accepted(setup);
  SimCluster without = Accepted(setup, /*with_cachewarm=*/false);
  const std::vector<int> with_cachewarm = Script(seed, with_cache);
  const std::vector<int> without_cachewarm = Script(seed, without);
  for (size_t i = 0; i < with_cachewarm.size(); ++i) {
    // The clock counts whole seconds: the scheduler sees a release one second later.
    EXPECT_LE(with_cachewarm[i], without_cachewarm[i] * 1.2 + 2) << "step " << i;
  }
  EXPECT_EQ(Joined(with_cache.violations()), "");
}

TEST_P(EveryGate, AutoModeHoldsNoColdWorkload) {
  SimSetup setup = Seeded();
  setup.pods_per_second = 8;
  SimCluster cluster = Accepted(setup);
  const int before = cluster.now();
  cluster.Scale(8);
  const auto ready = cluster.UntilReady(kLong);
  ASSERT_TRUE(ready.has_value());
  EXPECT_LE(*ready - before, setup.cold_seconds + 3);
  EXPECT_EQ(cluster.longest_hold(), 0);
  ASSERT_TRUE(cluster.Settle(300));
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n1")), 1);
  EXPECT_LE(cluster.elections(cluster.builder().Key("n3")), 1);
}

TEST_P(EveryGate, PodsWaitForAShortFetchAndHit) {
  SimSetup setup = Seeded();
  setup.cold_seconds = 40;
  setup.warm_seconds = 5;
  setup.fetch_seconds = 8;
  SimCluster cluster(setup);
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  cluster.AddNode({.name = "n1", .pods = 1});
  cluster.RunSeconds(5);
  cluster.Scale(1);
  ASSERT_TRUE(cluster.Settle(300));
  cluster.AddNode({.name = "n2"});
  cluster.RunSeconds(2);
  const int since = cluster.now();
  cluster.Scale(3);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  ASSERT_TRUE(cluster.Settle(300));
  EXPECT_GT(cluster.longest_hold(), 0);
  EXPECT_EQ(cluster.hits_after(since), 2);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryGate, RolloutIsHeldForAtMostOneBudget) {
  SimSetup setup = Seeded(api::GateMode::kHold);
  setup.replicas = 4;
  setup.fetch_seconds = 500;  // longer than the budget
  SimCluster cluster = Accepted(setup);
  cluster.builder().warmup().spec.gate.max_hold_seconds = 20;
  cluster.Scale(4);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  const int before = cluster.now();
  cluster.Rollout("r2", "server:2");
  const auto ready = cluster.UntilReady(kLong);
  ASSERT_TRUE(ready.has_value());
  const int without_holds = 4 * (setup.cold_seconds + 3);
  EXPECT_LE(*ready - before, without_holds + 20 + 4);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

// Six pods held for a fetch that does not end in time.
SimCluster HeldForLong(const SimSetup& setup) {
  SimSetup slow = setup;
  slow.fetch_seconds = 500;
  slow.pods_per_second = 6;
  SimCluster cluster(slow);
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  cluster.AddNode({.name = "n1"});
  cluster.AddNode({.name = "n2"});
  cluster.RunSeconds(5);
  cluster.Scale(1);
  EXPECT_TRUE(cluster.UntilReady(kLong).has_value());
  cluster.RunSeconds(10);
  cluster.Scale(7);
  cluster.RunSeconds(5);
  EXPECT_EQ(cluster.pods_held(), 6U);
  return cluster;
}

TEST_P(EveryGate, StandbyReleasesPodsAtDeadlineAfterLeadersAreKilled) {
  SimCluster cluster = HeldForLong(Seeded(api::GateMode::kHold));
  for (int i = 0; i < 70; ++i) {
    cluster.KillLeader();
    cluster.RunSecond();
  }
  EXPECT_EQ(cluster.pods_held(), 0U);
  EXPECT_GT(cluster.longest_hold(), 60) << "no leader released them";
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryGate, CronJobReleasesPodsWithinAMinutePastDeadlineWithoutOperator) {
  SimCluster cluster = HeldForLong(Seeded(api::GateMode::kHold));
  cluster.OperatorDown(true);
  cluster.RunSeconds(130);
  EXPECT_EQ(cluster.pods_held(), 0U);
  EXPECT_GE(cluster.longest_hold(), 65);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

class Unheld : public testing::TestWithParam<std::tuple<Strategy, api::GateMode>> {};

TEST_P(Unheld, NoPodIsHeldForASecond) {
  SimSetup setup{.mode = std::get<1>(GetParam()), .strategy = std::get<0>(GetParam())};
  setup.fetch_seconds = 20;
  SimCluster cluster = Accepted(setup);
  cluster.Scale(4);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  cluster.Rollout("r2", "server:2");
  if (setup.strategy == Strategy::kRecreate) {
    ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  }
  cluster.RunSeconds(100);
  EXPECT_EQ(cluster.longest_hold(), 0);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, Unheld,
    testing::Combine(testing::Values(Strategy::kRecreate, Strategy::kInOrder, Strategy::kJob),
                     testing::Values(api::GateMode::kAuto, api::GateMode::kHold)));

TEST_P(EveryGate, ReplacementPodsAreNotHeld) {
  SimSetup setup = Seeded(api::GateMode::kHold);
  setup.fetch_seconds = 50'000;  // so that waiting has a gain
  SimCluster cluster = Accepted(setup);
  cluster.Scale(6);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  cluster.RunSeconds(700);  // a later rollout has its own budget
  cluster.Scale(7);
  cluster.RunSeconds(3);
  EXPECT_EQ(cluster.pods_held(), 1U) << "an additional pod may be held";
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  cluster.RunSeconds(700);
  cluster.KillOne();
  for (int second = 0; second < 5; ++second) {
    cluster.RunSecond();
    EXPECT_EQ(cluster.pods_held(), 0U) << "second " << cluster.now();
  }
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryGate, AutoscalerSeesUnschedulablePods) {
  for (const api::GateMode mode : {api::GateMode::kAuto, api::GateMode::kHold}) {
    SimSetup setup = Seeded(mode);
    setup.pods_per_second = 50;
    setup.autoscaler_nodes = 20;
    SimCluster cluster(setup);
    cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
    cluster.AddNode({.name = "n1", .pods = 2});
    cluster.RunSeconds(5);
    cluster.Scale(40);
    const int before = cluster.now();
    const auto ready = cluster.UntilReady(kLong);
    ASSERT_TRUE(ready.has_value()) << "mode " << api::Name(mode);
    // Ten nodes, one per second, and a cold start, without any hold.
    EXPECT_LE(*ready - before, 10 + 3 * (setup.cold_seconds + 4));
    EXPECT_GE(cluster.nodes(), 10U);
    EXPECT_EQ(Joined(cluster.violations()), "");
  }
}

TEST_P(EveryGate, EmptyPoolBuildsOnceAndHitsAfterwards) {
  for (const api::GateMode mode : {api::GateMode::kAuto, api::GateMode::kHold}) {
    SimSetup setup = Seeded(mode);
    setup.autoscaler_nodes = 20;
    setup.fresh_nodes_tainted = true;
    SimCluster cluster(setup);
    cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
    cluster.RunSeconds(5);
    ASSERT_TRUE(cluster.status().injection.has_value()) << "mode " << api::Name(mode);
    const int before = cluster.now();
    cluster.Scale(1);
    const auto ready = cluster.UntilReady(kLong);
    ASSERT_TRUE(ready.has_value());
    EXPECT_LE(*ready - before, setup.cold_seconds + 10);
    ASSERT_TRUE(cluster.Settle(300)) << Joined(cluster.violations());
    EXPECT_EQ(cluster.elections(cluster.builder().Key("added0")), 1);
    cluster.Scale(0);
    cluster.RunSeconds(5);
    for (int i = 0; i < setup.autoscaler_nodes; ++i) {
      cluster.RemoveNode("added" + std::to_string(i));
    }
    cluster.RunSeconds(5);
    ASSERT_EQ(cluster.nodes(), 0U);
    const int since = cluster.now();
    cluster.Scale(1);
    ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
    ASSERT_TRUE(cluster.Settle(300));
    EXPECT_EQ(cluster.hits_after(since), 1);
    EXPECT_EQ(cluster.misses_after(since), 0);
    EXPECT_EQ(cluster.longest_hold(), 0);
    EXPECT_EQ(Joined(cluster.violations()), "");
  }
}

TEST_P(EveryGate, BurstOf200PodsIsNotDelayed) {
  SimSetup setup = Seeded();
  setup.pods_per_second = 200;
  setup.fetch_seconds = 3;
  SimCluster cluster(setup);
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  for (int i = 0; i < 10; ++i) {
    cluster.AddNode({.name = "n" + std::to_string(i), .pods = 25});
  }
  cluster.RunSeconds(5);
  cluster.Scale(2);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  cluster.RunSeconds(4);  // published, and most nodes are fetching
  const int before = cluster.now();
  cluster.Scale(202);
  cluster.RunSecond();
  EXPECT_EQ(cluster.pods_held(), 200U) << "waiting has a gain";
  for (int i = 0; i < kLong && cluster.pods_held() == 200; ++i) {
    cluster.RunSecond();
  }
  EXPECT_EQ(cluster.pods_held(), 0U) << "not all at once";
  const auto ready = cluster.UntilReady(kLong);
  ASSERT_TRUE(ready.has_value());
  EXPECT_LE(*ready - before, setup.cold_seconds + 3);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryGate, GroupMembersAreHeldOrReleasedTogether) {
  SimSetup setup = Seeded(api::GateMode::kHold);
  setup.strategy = Strategy::kGroup;
  setup.pods_per_second = 6;
  SimCluster cluster = Accepted(setup);
  cluster.Scale(6);
  for (int i = 0; i < 100; ++i) {
    cluster.RunSecond();
    const size_t held = cluster.pods_held();
    EXPECT_TRUE(held == 0 || held == 6) << "second " << i << ": " << held;
  }
  EXPECT_EQ(cluster.pods_ready(), 6U);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryGate, AlternatingLeadersAgree) {
  for (const api::GateMode mode : {api::GateMode::kAuto, api::GateMode::kHold}) {
    SimSetup setup = Seeded(mode);
    setup.stale_plan_chance = 0.5;
    SimCluster cluster = Accepted(setup);
    cluster.Scale(8);
    ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
    cluster.Rollout("r2", "server:2");
    ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
    ASSERT_TRUE(cluster.Settle(500));
    EXPECT_EQ(cluster.pods_held(), 0U);
    EXPECT_LE(cluster.elections(cluster.builder().Key("n1", "server:2")), 1);
    EXPECT_LE(cluster.longest_hold(), 62);
    EXPECT_EQ(Joined(cluster.violations()), "");
  }
}

TEST_P(EveryGate, UninjectedPodStartsColdAndDelaysNothing) {
  SimCluster cluster = Accepted(Seeded());
  cluster.AddUninjectedPod("early");
  cluster.Scale(4);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  ASSERT_TRUE(cluster.Settle(300));
  ASSERT_FALSE(cluster.status().starts.recent.empty());
  const auto& recent = cluster.status().starts.recent;
  const auto early = std::find_if(recent.begin(), recent.end(),
                                  [](const auto& each) { return each.pod == "early"; });
  ASSERT_NE(early, recent.end());
  EXPECT_EQ(early->result, api::StartResult::kCold);
  for (const api::BuilderStatus& builder : cluster.status().builders) {
    EXPECT_NE(builder.pod_name, "early");
  }
  EXPECT_EQ(Joined(cluster.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryGate, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
