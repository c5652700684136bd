// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/world.h"

// Holding on a virtual clock: only while it pays, never stuck, never slower than without us.
namespace cachewarm::sim {
namespace {

constexpr int kLong = 2000;

class EveryGate : public testing::TestWithParam<int> {
 protected:
  WorldSetup Seeded(api::GateMode mode = api::GateMode::kAuto) const {
    return {.seed = static_cast<uint32_t>(GetParam()), .mode = mode};
  }
};

World Accepted(const WorldSetup& setup, bool with_us = true) {
  World world(setup);
  world.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  world.OperatorDown(!with_us);
  world.AddNode({.name = "n1"});
  world.AddNode({.name = "n2"});
  world.AddNode({.name = "n3", .cpu_class = fakes::kAvx2});
  world.Seconds(5);
  return world;
}

// A history of scalings and rollouts, the same for both worlds; the seconds that the last Ready of
// each step took.
std::vector<int> Script(uint32_t seed, World& world) {
  std::mt19937 random(seed * 7919U);
  std::vector<int> out;
  int revision = 1;
  for (int step = 0; step < 8; ++step) {
    if (random() % 2 == 0) {
      ++revision;
      world.Rollout("r" + std::to_string(revision), "server:" + std::to_string(random() % 3));
    } else {
      world.Scale(1 + static_cast<int>(random() % 12));
    }
    if (random() % 3 == 0) {
      world.AddNode({.name = "x" + std::to_string(step)});
    }
    const int before = world.now();
    out.push_back(world.UntilReady(kLong).value_or(before + kLong) - before);
    world.Seconds(static_cast<int>(random() % 60));
  }
  return out;
}

TEST_P(EveryGate, InModeAutoTheLastReadyComesNoLaterThanWithoutUs) {
  const auto seed = static_cast<uint32_t>(GetParam());
  std::mt19937 random(seed);
  WorldSetup setup = Seeded();
  setup.pods_per_second = 20;
  setup.cold_seconds = 5 + static_cast<int>(random() % 36);
  setup.warm_seconds = 1 + static_cast<int>(random() % static_cast<uint32_t>(setup.cold_seconds));
  setup.fetch_seconds = 1 + static_cast<int>(random() % 40);
  World ours = Accepted(setup);
  World without = Accepted(setup, /*with_us=*/false);
  const std::vector<int> with_us = Script(seed, ours);
  const std::vector<int> without_us = Script(seed, without);
  for (size_t i = 0; i < with_us.size(); ++i) {
    // The clock counts whole seconds: a release is seen by the scheduler in the next one.
    EXPECT_LE(with_us[i], without_us[i] * 1.2 + 2) << "step " << i;
  }
  EXPECT_EQ(Joined(ours.violations()), "");
}

TEST_P(EveryGate, AColdWorkloadInModeAutoIsNotHeldAtAll) {
  WorldSetup setup = Seeded();
  setup.pods_per_second = 8;
  World world = Accepted(setup);
  const int before = world.now();
  world.Scale(8);
  const auto ready = world.UntilReady(kLong);
  ASSERT_TRUE(ready.has_value());
  EXPECT_LE(*ready - before, setup.cold_seconds + 3);
  EXPECT_EQ(world.longest_hold(), 0);
  ASSERT_TRUE(world.Settle(300));
  EXPECT_EQ(world.elections(world.builder().Key("n1")), 1);
  EXPECT_LE(world.elections(world.builder().Key("n3")), 1);
}

TEST_P(EveryGate, PodsMadeWhileANodeFetchesSoonEnoughWaitAndHit) {
  WorldSetup setup = Seeded();
  setup.cold_seconds = 40;
  setup.warm_seconds = 5;
  setup.fetch_seconds = 8;
  World world(setup);
  world.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  world.AddNode({.name = "n1", .pods = 1});
  world.Seconds(5);
  world.Scale(1);
  ASSERT_TRUE(world.Settle(300));
  world.AddNode({.name = "n2"});
  world.Seconds(2);
  const int since = world.now();
  world.Scale(3);
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  ASSERT_TRUE(world.Settle(300));
  EXPECT_GT(world.longest_hold(), 0);
  EXPECT_EQ(world.hits_after(since), 2);
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EveryGate, ARolloutIsHeldUpByNoMoreThanOneBudget) {
  WorldSetup setup = Seeded(api::GateMode::kHold);
  setup.replicas = 4;
  setup.fetch_seconds = 500;  // never within the budget
  World world = Accepted(setup);
  world.builder().warmup().spec.gate.max_hold_seconds = 20;
  world.Scale(4);
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  const int before = world.now();
  world.Rollout("r2", "server:2");
  const auto ready = world.UntilReady(kLong);
  ASSERT_TRUE(ready.has_value());
  const int without_holds = 4 * (setup.cold_seconds + 3);
  EXPECT_LE(*ready - before, without_holds + 20 + 4);
  EXPECT_EQ(Joined(world.violations()), "");
}

// Six pods that wait for a fetch which never ends in time.
World HeldForLong(const WorldSetup& setup) {
  WorldSetup slow = setup;
  slow.fetch_seconds = 500;
  slow.pods_per_second = 6;
  World world(slow);
  world.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  world.AddNode({.name = "n1"});
  world.AddNode({.name = "n2"});
  world.Seconds(5);
  world.Scale(1);
  EXPECT_TRUE(world.UntilReady(kLong).has_value());
  world.Seconds(10);
  world.Scale(7);
  world.Seconds(5);
  EXPECT_EQ(world.pods_held(), 6U);
  return world;
}

TEST_P(EveryGate, WithLeadersThatAreKilledOneAfterTheOtherTheStandbyKeepsTheDeadline) {
  World world = HeldForLong(Seeded(api::GateMode::kHold));
  for (int i = 0; i < 70; ++i) {
    world.KillLeader();
    world.Second();
  }
  EXPECT_EQ(world.pods_held(), 0U);
  EXPECT_GT(world.longest_hold(), 60) << "no leader was there to let go of them";
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EveryGate, WithNoOperatorTheCronJobLetsGoOfPodsAMinuteAfterTheirDeadlineAtTheLatest) {
  World world = HeldForLong(Seeded(api::GateMode::kHold));
  world.OperatorDown(true);
  world.Seconds(130);
  EXPECT_EQ(world.pods_held(), 0U);
  EXPECT_GE(world.longest_hold(), 65);
  EXPECT_EQ(Joined(world.violations()), "");
}

class Unheld : public testing::TestWithParam<std::tuple<Strategy, api::GateMode>> {};

TEST_P(Unheld, NoPodOfItWaitsForASecond) {
  WorldSetup setup{.mode = std::get<1>(GetParam()), .strategy = std::get<0>(GetParam())};
  setup.fetch_seconds = 20;
  World world = Accepted(setup);
  world.Scale(4);
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  world.Rollout("r2", "server:2");
  if (setup.strategy == Strategy::kRecreate) {
    ASSERT_TRUE(world.UntilReady(kLong).has_value());
  }
  world.Seconds(100);
  EXPECT_EQ(world.longest_hold(), 0);
  EXPECT_EQ(Joined(world.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, Unheld,
    testing::Combine(testing::Values(Strategy::kRecreate, Strategy::kInOrder, Strategy::kJob),
                     testing::Values(api::GateMode::kAuto, api::GateMode::kHold)));

TEST_P(EveryGate, PodsThatReplaceLostOnesAreNotHeld) {
  WorldSetup setup = Seeded(api::GateMode::kHold);
  setup.fetch_seconds = 50'000;  // so that there is something to wait for
  World world = Accepted(setup);
  world.Scale(6);
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  world.Seconds(700);  // what is made from now on has a budget of its own
  world.Scale(7);
  world.Seconds(3);
  EXPECT_EQ(world.pods_held(), 1U) << "one in addition may wait";
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  world.Seconds(700);
  world.KillOne();
  for (int second = 0; second < 5; ++second) {
    world.Second();
    EXPECT_EQ(world.pods_held(), 0U) << "second " << world.now();
  }
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EveryGate, AnAutoscalerIsNeverStarved) {
  for (const api::GateMode mode : {api::GateMode::kAuto, api::GateMode::kHold}) {
    WorldSetup setup = Seeded(mode);
    setup.pods_per_second = 50;
    setup.autoscaler_nodes = 20;
    World world(setup);
    world.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
    world.AddNode({.name = "n1", .pods = 2});
    world.Seconds(5);
    world.Scale(40);
    const int before = world.now();
    const auto ready = world.UntilReady(kLong);
    ASSERT_TRUE(ready.has_value()) << "mode " << api::Name(mode);
    // Ten nodes, one a second, and a cold start: no hold stands between.
    EXPECT_LE(*ready - before, 10 + 3 * (setup.cold_seconds + 4));
    EXPECT_GE(world.nodes(), 10U);
    EXPECT_EQ(Joined(world.violations()), "");
  }
}

TEST_P(EveryGate, APoolAtZeroNodesCompilesOnceAndHitsFromThenOn) {
  for (const api::GateMode mode : {api::GateMode::kAuto, api::GateMode::kHold}) {
    WorldSetup setup = Seeded(mode);
    setup.autoscaler_nodes = 20;
    setup.fresh_nodes_tainted = true;
    World world(setup);
    world.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
    world.Seconds(5);
    ASSERT_TRUE(world.status().injection.has_value()) << "mode " << api::Name(mode);
    const int before = world.now();
    world.Scale(1);
    const auto ready = world.UntilReady(kLong);
    ASSERT_TRUE(ready.has_value());
    EXPECT_LE(*ready - before, setup.cold_seconds + 10);
    ASSERT_TRUE(world.Settle(300)) << Joined(world.violations());
    EXPECT_EQ(world.elections(world.builder().Key("added0")), 1);
    world.Scale(0);
    world.Seconds(5);
    for (int i = 0; i < setup.autoscaler_nodes; ++i) {
      world.RemoveNode("added" + std::to_string(i));
    }
    world.Seconds(5);
    ASSERT_EQ(world.nodes(), 0U);
    const int since = world.now();
    world.Scale(1);
    ASSERT_TRUE(world.UntilReady(kLong).has_value());
    ASSERT_TRUE(world.Settle(300));
    EXPECT_EQ(world.hits_after(since), 1);
    EXPECT_EQ(world.misses_after(since), 0);
    EXPECT_EQ(world.longest_hold(), 0);
    EXPECT_EQ(Joined(world.violations()), "");
  }
}

TEST_P(EveryGate, ABurstOfTwoHundredPodsIsNotHeldUp) {
  WorldSetup setup = Seeded();
  setup.pods_per_second = 200;
  setup.fetch_seconds = 3;
  World world(setup);
  world.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  for (int i = 0; i < 10; ++i) {
    world.AddNode({.name = "n" + std::to_string(i), .pods = 25});
  }
  world.Seconds(5);
  world.Scale(2);
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  world.Seconds(4);  // published, and most nodes fetch
  const int before = world.now();
  world.Scale(202);
  world.Second();
  EXPECT_EQ(world.pods_held(), 200U) << "there is something to wait for";
  for (int i = 0; i < kLong && world.pods_held() == 200; ++i) {
    world.Second();
  }
  EXPECT_EQ(world.pods_held(), 0U) << "not all at once";
  const auto ready = world.UntilReady(kLong);
  ASSERT_TRUE(ready.has_value());
  EXPECT_LE(*ready - before, setup.cold_seconds + 3);
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EveryGate, AGroupIsNeverTornApart) {
  WorldSetup setup = Seeded(api::GateMode::kHold);
  setup.strategy = Strategy::kGroup;
  setup.pods_per_second = 6;
  World world = Accepted(setup);
  world.Scale(6);
  for (int i = 0; i < 100; ++i) {
    world.Second();
    const size_t held = world.pods_held();
    EXPECT_TRUE(held == 0 || held == 6) << "second " << i << ": " << held;
  }
  EXPECT_EQ(world.pods_ready(), 6U);
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EveryGate, TwoLeadersInTurnAgree) {
  for (const api::GateMode mode : {api::GateMode::kAuto, api::GateMode::kHold}) {
    WorldSetup setup = Seeded(mode);
    setup.other_leader = 0.5;
    World world = Accepted(setup);
    world.Scale(8);
    ASSERT_TRUE(world.UntilReady(kLong).has_value());
    world.Rollout("r2", "server:2");
    ASSERT_TRUE(world.UntilReady(kLong).has_value());
    ASSERT_TRUE(world.Settle(500));
    EXPECT_EQ(world.pods_held(), 0U);
    EXPECT_LE(world.elections(world.builder().Key("n1", "server:2")), 1);
    EXPECT_LE(world.longest_hold(), 62);
    EXPECT_EQ(Joined(world.violations()), "");
  }
}

TEST_P(EveryGate, APodThatSlippedPastThePolicyStartsColdAndNothingWaitsForIt) {
  World world = Accepted(Seeded());
  world.AddPodThatSlippedPast("early");
  world.Scale(4);
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  ASSERT_TRUE(world.Settle(300));
  ASSERT_FALSE(world.status().starts.recent.empty());
  const auto& recent = world.status().starts.recent;
  const auto early = std::find_if(recent.begin(), recent.end(),
                                  [](const auto& each) { return each.pod == "early"; });
  ASSERT_NE(early, recent.end());
  EXPECT_EQ(early->result, api::StartResult::kCold);
  for (const api::BuilderStatus& builder : world.status().builders) {
    EXPECT_NE(builder.pod_name, "early");
  }
  EXPECT_EQ(Joined(world.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryGate, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
