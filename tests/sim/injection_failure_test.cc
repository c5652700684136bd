// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_cluster.h"

// A workload that crashes with the cache directory runs without it until the conditions change.
namespace cachewarm::sim {
namespace {

constexpr int kLong = 2000;

class EveryInjectionFailure : public testing::TestWithParam<int> {
 protected:
  SimSetup Seeded() const { return {.seed = static_cast<uint32_t>(GetParam())}; }
};

// "server:1" crashes when injected; runs until that was detected.
SimCluster Suspended(const SimSetup& setup, int seconds) {
  SimCluster cluster(setup);
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  cluster.AddNode({.name = "n1"});
  cluster.AddNode({.name = "n2"});
  cluster.AddNode({.name = "n3", .cpu_class = fakes::kAvx2});
  cluster.RunSeconds(5);
  cluster.CrashWhenInjected("server:1");
  cluster.Scale(4);
  cluster.RunSeconds(seconds);
  return cluster;
}

void LiveWithoutUs(SimCluster& cluster) {
  ASSERT_TRUE(cluster.status().suspension.has_value());
  EXPECT_EQ(cluster.status().suspension->reason, "PodsCrashing");
  EXPECT_FALSE(cluster.status().injection.has_value());
  EXPECT_EQ(cluster.pods_held(), 0U);
  // Running pods are the user's to delete.
  cluster.KillInjected();
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value()) << Joined(cluster.violations());
  EXPECT_EQ(cluster.pods_injected(), 0U);
  cluster.KillOne();
  cluster.Scale(6);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  cluster.RunSeconds(600);
  EXPECT_EQ(cluster.pods_injected(), 0U) << "time alone causes no retry";
}

void TryAgainWithAnotherImage(SimCluster& cluster) {
  cluster.Rollout("r2", "server:2");
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value()) << Joined(cluster.violations());
  EXPECT_GE(cluster.pods_injected(), 5U) << "the first pod may precede the plan";
  ASSERT_TRUE(cluster.Settle(300));
  const int warm_since = cluster.now();
  cluster.Scale(9);
  ASSERT_TRUE(cluster.Settle(300));
  EXPECT_EQ(cluster.hits_after(warm_since), 3);
  EXPECT_EQ(cluster.misses_after(warm_since), 0);
}

TEST_P(EveryInjectionFailure, CrashingPodsSuspendInjectionUntilImageChanges) {
  SimCluster cluster = Suspended(Seeded(), 30);
  LiveWithoutUs(cluster);
  TryAgainWithAnotherImage(cluster);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryInjectionFailure, CrashingOperatorsWithStalePlansSuspendInjectionToo) {
  SimSetup setup = Seeded();
  setup.operator_crash_chance = 0.02;
  setup.stale_plan_chance = 0.1;
  SimCluster cluster = Suspended(setup, 200);
  LiveWithoutUs(cluster);
  cluster.SetOperatorCrashChance(0);
  cluster.RunSeconds(kFailoverSeconds);
  TryAgainWithAnotherImage(cluster);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryInjectionFailure, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
