// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_cluster.h"

// A bundle of a builder Job is proven on the node of its builder before other nodes get it. An
// engine that refuses a bundle is simulated by one that never becomes ready with it. SimCluster
// checks every second that no other node has a bundle before it is published.
namespace cachewarm::sim {
namespace {

constexpr int kLong = 2000;
constexpr int kTimeout = 60;  // seconds until a proof that hangs is over

class EveryProof : public testing::TestWithParam<int> {
 protected:
  SimSetup Seeded() const { return {.seed = static_cast<uint32_t>(GetParam())}; }

  SimSetup Crashing() const {
    SimSetup setup = Seeded();
    setup.operator_crash_chance = 0.02;
    setup.stale_plan_chance = 0.1;
    return setup;
  }
};

// Three nodes without pods. The next `refused` bundles are refused.
SimCluster ThreeNodes(const SimSetup& setup, int refused) {
  SimCluster cluster(setup);
  api::CompileSpec& compile = cluster.builder().warmup().spec.compile;
  compile.builder = api::Builder::kJob;
  compile.proof = api::Proof::kEngine;
  compile.timeout_seconds = kTimeout;
  cluster.HangWithNextBundles(refused);
  for (const char* node : {"n1", "n2", "n3"}) {
    cluster.AddNode({.name = node});
  }
  return cluster;
}

bool RunUntilWarm(SimCluster& cluster) {
  for (int i = 0; i < kLong && cluster.status().summary.nodes != "3/3"; ++i) {
    cluster.RunSecond();
  }
  return cluster.status().summary.nodes == "3/3" && cluster.Settle(kLong);
}

void ExpectHits(SimCluster& cluster) {
  const int since = cluster.now();
  cluster.Scale(6);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  ASSERT_TRUE(cluster.Settle(kLong));
  EXPECT_EQ(cluster.hits_after(since), 6);
}

TEST_P(EveryProof, ProvenBundleReachesAllNodes) {
  SimCluster cluster = ThreeNodes(Seeded(), 0);
  ASSERT_TRUE(RunUntilWarm(cluster)) << Joined(cluster.violations());
  EXPECT_TRUE(cluster.builder().in().jobs.empty());
  EXPECT_TRUE(cluster.status().suspended_bundles.empty());
  EXPECT_EQ(cluster.status().starts.counts.builder, 1) << "the start of the proof is not counted";
  ExpectHits(cluster);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryProof, CrashingOperatorsWithStalePlansProveTheBundleToo) {
  SimCluster cluster = ThreeNodes(Crashing(), 0);
  ASSERT_TRUE(RunUntilWarm(cluster)) << Joined(cluster.violations());
  EXPECT_TRUE(cluster.builder().in().jobs.empty());
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryProof, RefusedBundleIsReplacedByTheNextOne) {
  SimCluster cluster = ThreeNodes(Crashing(), 1);
  ASSERT_TRUE(RunUntilWarm(cluster)) << Joined(cluster.violations());
  ASSERT_EQ(cluster.status().suspended_bundles.size(), 1U);
  EXPECT_NE(cluster.status().suspended_bundles[0].digest, cluster.status().bundles.at(0).digest);
  cluster.SetOperatorCrashChance(0);
  cluster.RunSeconds(kFailoverSeconds);
  ExpectHits(cluster);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryProof, TwoRefusedBundlesEndTheBuildsAndPodsStartCold) {
  SimCluster cluster = ThreeNodes(Seeded(), 100);
  cluster.RunSeconds(kLong);
  EXPECT_EQ(cluster.status().suspended_bundles.size(), 2U);
  EXPECT_TRUE(cluster.status().bundles.empty());
  EXPECT_TRUE(cluster.builder().in().jobs.empty());
  cluster.Scale(3);
  EXPECT_TRUE(cluster.UntilReady(kLong).has_value());
  EXPECT_EQ(cluster.pods_injected(), 3U);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryProof, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
