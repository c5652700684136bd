// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_cluster.h"

namespace cachewarm::sim {
namespace {

void AddThreeNodesOfTwoClasses(SimCluster& cluster) {
  cluster.AddNode({.name = "n1"});
  cluster.AddNode({.name = "n2"});
  cluster.AddNode({.name = "n3", .cpu_class = fakes::kAvx2});
}

// Accepted before the first pod, as if the warmup was applied with or before the Deployment.
SimCluster ThreeNodesOfTwoClasses(const SimSetup& setup) {
  SimCluster cluster(setup);
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  AddThreeNodesOfTwoClasses(cluster);
  cluster.Scale(0);
  cluster.RunSeconds(5);
  cluster.Scale(setup.replicas);
  return cluster;
}

class EverySeed : public testing::TestWithParam<int> {
 protected:
  SimSetup Seeded(int replicas) const {
    return {.seed = static_cast<uint32_t>(GetParam()), .replicas = replicas};
  }
};

TEST_P(EverySeed, EachClassHasOneBuilderAndLaterPodsHit) {
  SimCluster cluster = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(cluster.Settle(200)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.pods_ready(), 6U);
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n1")), 1);
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n3")), 1);
  EXPECT_EQ(cluster.status().summary.types, "2/2");
  EXPECT_EQ(cluster.status().summary.nodes, "3/3");
  const int warm_since = cluster.now();
  cluster.Scale(15);
  ASSERT_TRUE(cluster.Settle(200)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.hits_after(warm_since), 9);
  EXPECT_EQ(cluster.misses_after(warm_since), 0);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EverySeed, TwoOfEightHeldPodsBuildForTwoTypesAndSixHit) {
  SimSetup setup = Seeded(8);
  setup.pods_per_second = 8;
  SimCluster cluster = ThreeNodesOfTwoClasses(setup);
  ASSERT_TRUE(cluster.Settle(200)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.starts_ended(), 8U);
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n1")), 1);
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n3")), 1);
  EXPECT_EQ(cluster.hits_after(0), 6);
  EXPECT_EQ(cluster.misses_after(0), 0);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EverySeed, WarmRevisionIsNotGatedWhileOperatorIsDown) {
  SimCluster cluster = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(cluster.Settle(200));
  ASSERT_FALSE(cluster.status().injection->warm_revisions.empty());
  cluster.OperatorDown(true);
  cluster.Scale(12);
  cluster.RunSeconds(20);
  EXPECT_EQ(cluster.pods_held(), 0U);
  EXPECT_EQ(cluster.pods_ready(), 12U);
}

TEST_P(EverySeed, JobsWarmAScaledDownWorkloadAndAreDeleted) {
  SimCluster cluster(Seeded(0));
  AddThreeNodesOfTwoClasses(cluster);
  ASSERT_TRUE(cluster.Settle(200)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.status().summary.types, "2/2");
  EXPECT_TRUE(cluster.builder().in().jobs.empty());
  const int warm_since = cluster.now();
  cluster.Scale(6);
  ASSERT_TRUE(cluster.Settle(200));
  EXPECT_EQ(cluster.hits_after(warm_since), 6);
  EXPECT_EQ(cluster.misses_after(warm_since), 0);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EverySeed, LaterNodeGetsBundleWithoutABuild) {
  SimCluster cluster = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(cluster.Settle(200));
  cluster.AddNode({.name = "n4"});
  ASSERT_TRUE(cluster.Settle(100));
  EXPECT_EQ(cluster.status().summary.nodes, "4/4");
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n1")), 1);
  EXPECT_FALSE(cluster.status().injection->warm_revisions.empty());
}

TEST_P(EverySeed, OneFetchSlotWarmsAllNodesEventually) {
  SimCluster cluster = ThreeNodesOfTwoClasses(Seeded(6));
  cluster.builder().in().settings.fetch_nodes_max = 1;
  for (int i = 0; i < 5; ++i) {
    cluster.AddNode({.name = "more" + std::to_string(i)});
  }
  ASSERT_TRUE(cluster.Settle(300)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.status().summary.nodes, "8/8");
  const int warm_since = cluster.now();
  cluster.Scale(16);
  ASSERT_TRUE(cluster.Settle(200));
  EXPECT_EQ(cluster.misses_after(warm_since), 0);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EverySeed, BundleOutlivesBuilderNode) {
  SimCluster cluster = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(cluster.Settle(200));
  cluster.RemoveNode("n1");
  const int since = cluster.now();
  ASSERT_TRUE(cluster.Settle(200));
  EXPECT_EQ(cluster.pods_ready(), 6U);
  EXPECT_EQ(cluster.misses_after(since), 0);
}

TEST_P(EverySeed, NewImageBuildsOncePerClassAndRollbackHits) {
  SimCluster cluster = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(cluster.Settle(200));
  cluster.Rollout("r2", "server:2");
  ASSERT_TRUE(cluster.Settle(600)) << Joined(cluster.violations());
  EXPECT_LE(cluster.elections(cluster.builder().Key("n1", "server:2")), 1);
  EXPECT_LE(cluster.elections(cluster.builder().Key("n3", "server:2")), 1);
  const int since = cluster.now();
  cluster.Rollout("r1", "server:1");
  ASSERT_TRUE(cluster.Settle(600));
  EXPECT_EQ(cluster.misses_after(since), 0);
  EXPECT_GE(cluster.hits_after(since), 6);
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n1")), 1);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EverySeed, ChangedArgsNeedNoBuild) {
  SimCluster cluster = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(cluster.Settle(200));
  const int since = cluster.now();
  cluster.Rollout("r2", "server:1");
  ASSERT_TRUE(cluster.Settle(300));
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n1")), 1);
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n3")), 1);
  EXPECT_EQ(cluster.misses_after(since), 0);
}

TEST_P(EverySeed, PodsStartColdAtDeadlineWhileStoreIsDown) {
  SimCluster cluster = ThreeNodesOfTwoClasses(Seeded(6));
  ASSERT_TRUE(cluster.Settle(200));
  cluster.StoreDown(true);
  cluster.AddNode({.name = "n4", .pods = 50});
  cluster.Scale(30);
  cluster.RunSeconds(120);
  EXPECT_EQ(cluster.pods_held(), 0U);
  EXPECT_EQ(cluster.pods_ready(), 30U);
  EXPECT_EQ(Joined(cluster.violations()), "");
  cluster.StoreDown(false);
  EXPECT_TRUE(cluster.Settle(200));
}

TEST_P(EverySeed, CrashingOperatorConvergesWithOneBuilderPerKey) {
  SimSetup setup = Seeded(6);
  setup.operator_crash_chance = 0.2;
  SimCluster cluster = ThreeNodesOfTwoClasses(setup);
  cluster.RunSeconds(150);
  cluster.SetOperatorCrashChance(0);
  ASSERT_TRUE(cluster.Settle(300)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.pods_ready(), 6U);
  EXPECT_LE(cluster.elections(cluster.builder().Key("n1")), 1);
  EXPECT_LE(cluster.elections(cluster.builder().Key("n3")), 1);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EverySeed, RandomHistoriesConverge) {
  SimSetup setup = Seeded(4);
  setup.mode = GetParam() % 2 == 0 ? api::GateMode::kAuto : api::GateMode::kHold;
  setup.operator_crash_chance = 0.1;
  setup.preference_chance = 0.8;
  SimCluster cluster = ThreeNodesOfTwoClasses(setup);
  std::mt19937 random(static_cast<uint32_t>(GetParam()) * 7919U);
  int revision = 1;
  for (int i = 0; i < 40; ++i) {
    switch (random() % 7) {
      case 0:
        cluster.Scale(static_cast<int>(random() % 10));
        break;
      case 1:
        cluster.KillOne();
        break;
      case 2:
        ++revision;
        cluster.Rollout("r" + std::to_string(revision), "server:" + std::to_string(random() % 3));
        break;
      case 3:
        cluster.StoreDown(random() % 2 == 0);
        break;
      case 4:
        cluster.OperatorDown(random() % 2 == 0);
        break;
      case 5:
        cluster.AddNode({.name = "x" + std::to_string(i)});
        break;
      default:
        cluster.RemoveNode("x" + std::to_string(random() % 40));
        break;
    }
    cluster.RunSeconds(static_cast<int>(random() % 20));
  }
  cluster.StoreDown(false);
  cluster.OperatorDown(false);
  cluster.SetOperatorCrashChance(0);
  cluster.Scale(5);
  ASSERT_TRUE(cluster.Settle(2500)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.pods_ready(), 5U);
  EXPECT_EQ(cluster.pods_held(), 0U);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EverySeed, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
