// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/world.h"

namespace cachewarm::sim {
namespace {

void AddThreeNodesOfTwoClasses(World& world) {
  world.AddNode({.name = "n1"});
  world.AddNode({.name = "n2"});
  world.AddNode({.name = "n3", .cpu_class = fakes::kAvx2});
}

// Accepted before the first pod, as when the warmup is applied with the Deployment or before it.
World ThreeNodesOfTwoClasses(const WorldSetup& setup) {
  World world(setup);
  world.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  AddThreeNodesOfTwoClasses(world);
  world.Scale(0);
  world.Seconds(5);
  world.Scale(setup.replicas);
  return world;
}

class EverySeed : public testing::TestWithParam<int> {
 protected:
  WorldSetup Seeded(int replicas) const {
    return {.seed = static_cast<uint32_t>(GetParam()), .replicas = replicas};
  }
};

TEST_P(EverySeed, OneBuilderPerClassAndEveryLaterPodHits) {
  World world = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(world.Settle(200)) << Joined(world.violations());
  EXPECT_EQ(world.pods_ready(), 6U);
  EXPECT_EQ(world.elections(world.builder().Key("n1")), 1);
  EXPECT_EQ(world.elections(world.builder().Key("n3")), 1);
  EXPECT_EQ(world.status().summary.types, "2/2");
  EXPECT_EQ(world.status().summary.nodes, "3/3");
  const int warm_since = world.now();
  world.Scale(15);
  ASSERT_TRUE(world.Settle(200)) << Joined(world.violations());
  EXPECT_EQ(world.hits_after(warm_since), 9);
  EXPECT_EQ(world.misses_after(warm_since), 0);
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EverySeed, OfEightHeldPodsOnNodesOfTwoTypesTwoCompileAndSixHit) {
  WorldSetup setup = Seeded(8);
  setup.pods_per_second = 8;
  World world = ThreeNodesOfTwoClasses(setup);
  ASSERT_TRUE(world.Settle(200)) << Joined(world.violations());
  EXPECT_EQ(world.starts_ended(), 8U);
  EXPECT_EQ(world.elections(world.builder().Key("n1")), 1);
  EXPECT_EQ(world.elections(world.builder().Key("n3")), 1);
  EXPECT_EQ(world.hits_after(0), 6);
  EXPECT_EQ(world.misses_after(0), 0);
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EverySeed, AWarmRevisionIsNeverGatedAlsoWithTheOperatorDead) {
  World world = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(world.Settle(200));
  ASSERT_FALSE(world.status().injection->warm_revisions.empty());
  world.OperatorDown(true);
  world.Scale(12);
  world.Seconds(20);
  EXPECT_EQ(world.pods_held(), 0U);
  EXPECT_EQ(world.pods_ready(), 12U);
}

TEST_P(EverySeed, JobsWarmAWorkloadThatSleepsAndAreGoneAfterwards) {
  World world(Seeded(0));
  AddThreeNodesOfTwoClasses(world);
  ASSERT_TRUE(world.Settle(200)) << Joined(world.violations());
  EXPECT_EQ(world.status().summary.types, "2/2");
  EXPECT_TRUE(world.builder().in().jobs.empty());
  const int warm_since = world.now();
  world.Scale(6);
  ASSERT_TRUE(world.Settle(200));
  EXPECT_EQ(world.hits_after(warm_since), 6);
  EXPECT_EQ(world.misses_after(warm_since), 0);
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EverySeed, ANodeThatJoinsLaterGetsTheBundleWithoutABuild) {
  World world = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(world.Settle(200));
  world.AddNode({.name = "n4"});
  ASSERT_TRUE(world.Settle(100));
  EXPECT_EQ(world.status().summary.nodes, "4/4");
  EXPECT_EQ(world.elections(world.builder().Key("n1")), 1);
  EXPECT_FALSE(world.status().injection->warm_revisions.empty());
}

TEST_P(EverySeed, WithOneTurnAtATimeEveryNodeIsWarmInTheEnd) {
  World world = ThreeNodesOfTwoClasses(Seeded(6));
  world.builder().in().settings.fetch_nodes_max = 1;
  for (int i = 0; i < 5; ++i) {
    world.AddNode({.name = "more" + std::to_string(i)});
  }
  ASSERT_TRUE(world.Settle(300)) << Joined(world.violations());
  EXPECT_EQ(world.status().summary.nodes, "8/8");
  const int warm_since = world.now();
  world.Scale(16);
  ASSERT_TRUE(world.Settle(200));
  EXPECT_EQ(world.misses_after(warm_since), 0);
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EverySeed, TheBundleOutlivesItsBuildersNode) {
  World world = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(world.Settle(200));
  world.RemoveNode("n1");
  const int since = world.now();
  ASSERT_TRUE(world.Settle(200));
  EXPECT_EQ(world.pods_ready(), 6U);
  EXPECT_EQ(world.misses_after(since), 0);
}

TEST_P(EverySeed, ARolloutToANewImageBuildsOncePerClassAndARollBackHitsAtOnce) {
  World world = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(world.Settle(200));
  world.Rollout("r2", "server:2");
  ASSERT_TRUE(world.Settle(600)) << Joined(world.violations());
  EXPECT_LE(world.elections(world.builder().Key("n1", "server:2")), 1);
  EXPECT_LE(world.elections(world.builder().Key("n3", "server:2")), 1);
  const int since = world.now();
  world.Rollout("r1", "server:1");
  ASSERT_TRUE(world.Settle(600));
  EXPECT_EQ(world.misses_after(since), 0);
  EXPECT_GE(world.hits_after(since), 6);
  EXPECT_EQ(world.elections(world.builder().Key("n1")), 1);
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EverySeed, AChangeOfArgsAloneCostsNoBuild) {
  World world = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(world.Settle(200));
  const int since = world.now();
  world.Rollout("r2", "server:1");
  ASSERT_TRUE(world.Settle(300));
  EXPECT_EQ(world.elections(world.builder().Key("n1")), 1);
  EXPECT_EQ(world.elections(world.builder().Key("n3")), 1);
  EXPECT_EQ(world.misses_after(since), 0);
}

TEST_P(EverySeed, WithTheStoreDownPodsStartColdAtTheirDeadline) {
  World world = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(world.Settle(200));
  world.StoreDown(true);
  world.AddNode({.name = "n4", .pods = 50});
  world.Scale(30);
  world.Seconds(120);
  EXPECT_EQ(world.pods_held(), 0U);
  EXPECT_EQ(world.pods_ready(), 30U);
  EXPECT_EQ(Joined(world.violations()), "");
  world.StoreDown(false);
  EXPECT_TRUE(world.Settle(200));
}

TEST_P(EverySeed, AnOperatorThatDiesAtAnyMomentConvergesWithOneBuilderPerKey) {
  WorldSetup setup = Seeded(6);
  setup.operator_dies = 0.2;
  World world = ThreeNodesOfTwoClasses(setup);
  world.Seconds(150);
  world.SetOperatorDies(0);
  ASSERT_TRUE(world.Settle(300)) << Joined(world.violations());
  EXPECT_EQ(world.pods_ready(), 6U);
  EXPECT_LE(world.elections(world.builder().Key("n1")), 1);
  EXPECT_LE(world.elections(world.builder().Key("n3")), 1);
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EverySeed, RandomHistoriesConverge) {
  WorldSetup setup = Seeded(4);
  setup.mode = GetParam() % 2 == 0 ? api::GateMode::kAuto : api::GateMode::kHold;
  setup.operator_dies = 0.1;
  setup.preference_kept = 0.8;
  World world = ThreeNodesOfTwoClasses(setup);
  std::mt19937 random(static_cast<uint32_t>(GetParam()) * 7919U);
  int revision = 1;
  for (int i = 0; i < 40; ++i) {
    switch (random() % 7) {
      case 0:
        world.Scale(static_cast<int>(random() % 10));
        break;
      case 1:
        world.KillOne();
        break;
      case 2:
        ++revision;
        world.Rollout("r" + std::to_string(revision), "server:" + std::to_string(random() % 3));
        break;
      case 3:
        world.StoreDown(random() % 2 == 0);
        break;
      case 4:
        world.OperatorDown(random() % 2 == 0);
        break;
      case 5:
        world.AddNode({.name = "x" + std::to_string(i)});
        break;
      default:
        world.RemoveNode("x" + std::to_string(random() % 40));
        break;
    }
    world.Seconds(static_cast<int>(random() % 20));
  }
  world.StoreDown(false);
  world.OperatorDown(false);
  world.SetOperatorDies(0);
  world.Scale(5);
  ASSERT_TRUE(world.Settle(2500)) << Joined(world.violations());
  EXPECT_EQ(world.pods_ready(), 5U);
  EXPECT_EQ(world.pods_held(), 0U);
  EXPECT_EQ(Joined(world.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EverySeed, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
