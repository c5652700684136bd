// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_cluster.h"

// Constraints of the workload come first: deadlines, disruption budgets, quotas, devices, and an
// older CacheWarmup.
namespace cachewarm::sim {
namespace {

constexpr int kLong = 2000;
constexpr int kNeverInTime = 5000;

class EveryConstraint : public testing::TestWithParam<int> {
 protected:
  SimSetup Seeded() const {
    return {.seed = static_cast<uint32_t>(GetParam()), .mode = api::GateMode::kHold};
  }
  // No pod is held, and starts are long enough to overlap with a builder.
  SimSetup SlowlyStarting() const {
    SimSetup setup = Seeded();
    setup.mode = api::GateMode::kNever;
    setup.cold_seconds = 40;
    setup.pods_per_second = 4;
    return setup;
  }
};

SimCluster WithTwoNodes(const SimSetup& setup, api::Builder builder, const fakes::NodeSetup& like) {
  SimCluster cluster(setup);
  cluster.builder().warmup().spec.compile.builder = builder;
  cluster.builder().warmup().spec.gate.max_hold_seconds = 600;
  for (const char* name : {"n1", "n2"}) {
    fakes::NodeSetup node = like;
    node.name = name;
    cluster.AddNode(node);
  }
  cluster.RunSeconds(5);
  return cluster;
}

TEST_P(EveryConstraint, HoldTakesAtMostHalfOfProgressDeadline) {
  SimSetup setup = Seeded();
  setup.fetch_seconds = kNeverInTime;
  setup.progress_deadline = 60;
  SimCluster cluster = WithTwoNodes(setup, api::Builder::kFirstPod, {});
  cluster.Scale(3);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  cluster.RunSeconds(20);
  const int before = cluster.now();
  cluster.Rollout("r2", "server:1");
  const auto ready = cluster.UntilReady(kLong);
  ASSERT_TRUE(ready.has_value());
  EXPECT_GT(cluster.longest_hold(), 10) << "it waits for a fetch that never starts";
  EXPECT_LE(cluster.longest_hold(), 30);
  EXPECT_LE(*ready - before, 30 + 3 * (setup.cold_seconds + 4)) << "one budget for all three";
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryConstraint, PodsAreHeldOnlyWhilePodDisruptionBudgetIsMet) {
  SimSetup setup = Seeded();
  setup.fetch_seconds = kNeverInTime;
  setup.unavailable_max = 6;
  setup.budget = 5;
  SimCluster cluster = WithTwoNodes(setup, api::Builder::kFirstPod, {});
  cluster.builder().warmup().spec.gate.max_hold_seconds = 30;
  cluster.Scale(6);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  cluster.RunSeconds(700);  // a later rollout has its own budget
  cluster.Kill("p1000");
  cluster.RunSeconds(3);
  EXPECT_EQ(cluster.pods_held(), 1U) << "five are available";
  cluster.Kill("p1001");
  for (int i = 0; i < 5; ++i) {
    cluster.RunSecond();
    EXPECT_EQ(cluster.pods_held(), 0U) << "second " << i;
  }
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  EXPECT_EQ(Joined(cluster.violations()), "");
}

// A Job compiles while the workload fills the capacity and needs one more pod to roll out;
// afterwards capacity is free again and the Job builds.
void RollOutBesideABuilder(const SimSetup& setup, const fakes::NodeSetup& node, int replicas) {
  SimCluster cluster = WithTwoNodes(setup, api::Builder::kJob, node);
  cluster.Scale(replicas);
  cluster.RunSeconds(10);
  ASSERT_EQ(cluster.builder().in().jobs.size(), 1U);
  for (int i = 2; i < 5; ++i) {
    const int before = cluster.now();
    cluster.Rollout("r" + std::to_string(i), "server:1");
    const auto ready = cluster.UntilReady(kLong);
    ASSERT_TRUE(ready.has_value()) << Joined(cluster.violations());
    EXPECT_LE(*ready - before, replicas * (setup.cold_seconds + 2 + 8));
    cluster.RunSeconds(20);
  }
  ASSERT_TRUE(cluster.Settle(kLong));
  EXPECT_EQ(cluster.status().summary.nodes, "2/2");
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryConstraint, BuilderTakesNoQuotaFromARollout) {
  SimSetup setup = SlowlyStarting();
  setup.quota = 5;
  RollOutBesideABuilder(setup, {}, 4);
}

TEST_P(EveryConstraint, BuilderTakesNoDeviceFromARollout) {
  SimSetup setup = SlowlyStarting();
  setup.devices = 1;
  RollOutBesideABuilder(setup, {.gpu_type = fakes::kH100, .gpus = 2}, 3);
}

TEST_P(EveryConstraint, YoungerOverlappingWarmupWaitsUntilOlderIsDeleted) {
  SimCluster cluster(Seeded());
  cluster.builder().in().others = {{.name = "first", .older = true, .labels = {{"app", "llama"}}}};
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  for (const char* name : {"n1", "n2"}) {
    cluster.AddNode({.name = name});
  }
  cluster.builder().reported("n1").prepared = {"image"};
  cluster.builder().reported("n2").prepared = {"image"};
  cluster.Scale(4);
  ASSERT_TRUE(cluster.UntilReady(kLong).has_value());
  EXPECT_FALSE(cluster.status().injection.has_value());
  EXPECT_TRUE(cluster.status().builders.empty());
  for (const char* name : {"n1", "n2"}) {
    EXPECT_TRUE(cluster.builder().cache(name).spec.warmups.empty());
  }
  cluster.builder().in().others.clear();
  cluster.RunSeconds(5);
  ASSERT_TRUE(cluster.status().injection.has_value());
  EXPECT_EQ(cluster.starts_ended(), 4U) << "running pods are not restarted";
  cluster.Scale(6);
  ASSERT_TRUE(cluster.Settle(300));
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n1")), 1);
  EXPECT_EQ(cluster.status().summary.nodes, "2/2");
  EXPECT_EQ(Joined(cluster.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryConstraint, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
