// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_cluster.h"

// A bundle with which starts hang is suspended; later pods start without it.
namespace cachewarm::sim {
namespace {

constexpr int kLong = 2000;
constexpr int kBackoff = 1500;  // seconds; the first two builds of a next bundle wait 10 and 20 min

class EveryHungStart : public testing::TestWithParam<int> {
 protected:
  SimSetup Seeded() const { return {.seed = static_cast<uint32_t>(GetParam())}; }
};

// The next `count` bundles hang. One pod has built the first of them.
SimCluster Built(const SimSetup& setup, int count) {
  SimCluster cluster(setup);
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  cluster.builder().warmup().spec.hang_seconds = 20;
  cluster.HangWithNextBundles(count);
  cluster.AddNode({.name = "n1"});
  cluster.AddNode({.name = "n2"});
  cluster.RunSeconds(5);
  cluster.Scale(1);
  EXPECT_TRUE(cluster.UntilReady(kLong).has_value());
  EXPECT_TRUE(cluster.Settle(kLong));
  return cluster;
}

// Starts pods that hang, until the present bundle is suspended, and deletes them.
void HangUntilSuspended(SimCluster& cluster, int replicas, size_t suspended) {
  cluster.Scale(replicas);
  for (int i = 0; i < kLong && cluster.status().suspended_bundles.size() < suspended; ++i) {
    cluster.RunSecond();
  }
  ASSERT_EQ(cluster.status().suspended_bundles.size(), suspended) << Joined(cluster.violations());
  EXPECT_TRUE(cluster.status().bundles.empty());
  // A replacement on a node that still has the bundle hangs again: there may have been no leader.
  bool are_ready = false;
  for (int i = 0; i < 20 && !are_ready; ++i) {
    cluster.RunSeconds(5);
    cluster.KillUnready();
    are_ready = cluster.UntilReady(100).has_value();
  }
  EXPECT_TRUE(are_ready) << "they start without the bundle";
  EXPECT_FALSE(cluster.status().suspension.has_value()) << "injection continues";
}

// Runs until the backoff between two builds has ended, and the next bundle, if any, is distributed.
void BuildTheNextBundle(SimCluster& cluster) {
  EXPECT_TRUE(cluster.Settle(kLong));
  cluster.PassSeconds(kBackoff);
  cluster.RunSeconds(40);
}

void StartWarmWithTheNextBundle(SimCluster& cluster) {
  BuildTheNextBundle(cluster);
  ASSERT_EQ(cluster.status().bundles.size(), 1U);
  EXPECT_TRUE(cluster.status().bundles[0].hung_starts.empty());
  EXPECT_TRUE(cluster.Settle(kLong));
  const int since = cluster.now();
  cluster.Scale(7);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  ASSERT_TRUE(cluster.Settle(kLong));
  EXPECT_EQ(cluster.hits_after(since), 3);
}

TEST_P(EveryHungStart, SuspendsTheBundleUntilAnotherIsBuilt) {
  SimCluster cluster = Built(Seeded(), 1);
  HangUntilSuspended(cluster, 4, 1);
  StartWarmWithTheNextBundle(cluster);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryHungStart, CrashingOperatorsWithStalePlansSuspendTheBundleToo) {
  SimSetup setup = Seeded();
  setup.operator_crash_chance = 0.02;
  setup.stale_plan_chance = 0.1;
  SimCluster cluster = Built(setup, 1);
  HangUntilSuspended(cluster, 4, 1);
  cluster.SetOperatorCrashChance(0);
  cluster.RunSeconds(kFailoverSeconds);
  StartWarmWithTheNextBundle(cluster);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryHungStart, SecondBundleThatHangsIsTheLastOfItsRevision) {
  SimCluster cluster = Built(Seeded(), 3);
  HangUntilSuspended(cluster, 4, 1);
  BuildTheNextBundle(cluster);
  ASSERT_EQ(cluster.status().bundles.size(), 1U);
  HangUntilSuspended(cluster, 7, 2);
  BuildTheNextBundle(cluster);
  BuildTheNextBundle(cluster);
  EXPECT_TRUE(cluster.status().bundles.empty());
  cluster.Scale(9);
  EXPECT_TRUE(cluster.UntilReady(kLong).has_value());
  EXPECT_EQ(Joined(cluster.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryHungStart, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
