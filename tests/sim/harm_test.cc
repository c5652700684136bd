// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/world.h"

// A workload that cannot live with our directory lives without it, from then on and until there is
// a reason to try again.
namespace cachewarm::sim {
namespace {

constexpr int kLong = 2000;

class EveryHarm : public testing::TestWithParam<int> {
 protected:
  WorldSetup Seeded() const { return {.seed = static_cast<uint32_t>(GetParam())}; }
};

// "server:1" crashes with us; seconds pass until that has been seen.
World Withdrawn(const WorldSetup& setup, int seconds) {
  World world(setup);
  world.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  world.AddNode({.name = "n1"});
  world.AddNode({.name = "n2"});
  world.AddNode({.name = "n3", .cpu_class = fakes::kAvx2});
  world.Seconds(5);
  world.CrashWithUs("server:1");
  world.Scale(4);
  world.Seconds(seconds);
  return world;
}

void LiveWithoutUs(World& world) {
  ASSERT_TRUE(world.status().withdrawal.has_value());
  EXPECT_EQ(world.status().withdrawal->reason, "PodsCrash");
  EXPECT_FALSE(world.status().injection.has_value());
  EXPECT_EQ(world.pods_held(), 0U);
  // What runs is left as it is, the user's to delete.
  world.KillInjected();
  ASSERT_TRUE(world.UntilReady(kLong).has_value()) << Joined(world.violations());
  EXPECT_EQ(world.pods_injected(), 0U);
  world.KillOne();
  world.Scale(6);
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  world.Seconds(600);
  EXPECT_EQ(world.pods_injected(), 0U) << "time alone is no reason to try again";
}

void TryAgainWithAnotherImage(World& world) {
  world.Rollout("r2", "server:2");
  ASSERT_TRUE(world.UntilReady(kLong).has_value()) << Joined(world.violations());
  EXPECT_GE(world.pods_injected(), 5U) << "the first may come before the operator looks";
  ASSERT_TRUE(world.Settle(300));
  const int warm_since = world.now();
  world.Scale(9);
  ASSERT_TRUE(world.Settle(300));
  EXPECT_EQ(world.hits_after(warm_since), 3);
  EXPECT_EQ(world.misses_after(warm_since), 0);
}

TEST_P(EveryHarm, PodsThatCrashWithTheCacheEndTheInjectionUntilThereIsAnotherImage) {
  World world = Withdrawn(Seeded(), 30);
  LiveWithoutUs(world);
  TryAgainWithAnotherImage(world);
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EveryHarm, SoItIsWhenOperatorsDieAndActOnOldNews) {
  WorldSetup setup = Seeded();
  setup.operator_dies = 0.02;
  setup.other_leader = 0.1;
  World world = Withdrawn(setup, 200);
  LiveWithoutUs(world);
  world.SetOperatorDies(0);
  world.Seconds(kTakeOver);
  TryAgainWithAnotherImage(world);
  EXPECT_EQ(Joined(world.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryHarm, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
