// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/world.h"

// What the workload promises, has and needs comes first: deadlines, budgets, quotas, devices, and
// the other CacheWarmup that was there before.
namespace cachewarm::sim {
namespace {

constexpr int kLong = 2000;
constexpr int kNeverInTime = 5000;

class EveryPromise : public testing::TestWithParam<int> {
 protected:
  WorldSetup Seeded() const {
    return {.seed = static_cast<uint32_t>(GetParam()), .mode = api::GateMode::kHold};
  }
  // Nobody is held, and a start takes long enough for a builder to be in its way.
  WorldSetup SlowlyStarting() const {
    WorldSetup setup = Seeded();
    setup.mode = api::GateMode::kOff;
    setup.cold_seconds = 40;
    setup.pods_per_second = 4;
    return setup;
  }
};

World WithTwoNodes(const WorldSetup& setup, api::Builder builder, const fakes::NodeSetup& like) {
  World world(setup);
  world.builder().warmup().spec.compile.builder = builder;
  world.builder().warmup().spec.gate.max_hold_seconds = 600;
  for (const char* name : {"n1", "n2"}) {
    fakes::NodeSetup node = like;
    node.name = name;
    world.AddNode(node);
  }
  world.Seconds(5);
  return world;
}

TEST_P(EveryPromise, AHoldTakesNoMoreThanHalfOfTheProgressDeadline) {
  WorldSetup setup = Seeded();
  setup.fetch_seconds = kNeverInTime;
  setup.progress_deadline = 60;
  World world = WithTwoNodes(setup, api::Builder::kFirstPod, {});
  world.Scale(3);
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  world.Seconds(20);
  const int before = world.now();
  world.Rollout("r2", "server:1");
  const auto ready = world.UntilReady(kLong);
  ASSERT_TRUE(ready.has_value());
  EXPECT_GT(world.longest_hold(), 10) << "it waits for a fetch that does not come";
  EXPECT_LE(world.longest_hold(), 30);
  EXPECT_LE(*ready - before, 30 + 3 * (setup.cold_seconds + 4)) << "one budget for all three";
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EveryPromise, PodsAreHeldOnlyWhileAPodDisruptionBudgetHasWhatItAsksFor) {
  WorldSetup setup = Seeded();
  setup.fetch_seconds = kNeverInTime;
  setup.unavailable_most = 6;
  setup.budget = 5;
  World world = WithTwoNodes(setup, api::Builder::kFirstPod, {});
  world.builder().warmup().spec.gate.max_hold_seconds = 30;
  world.Scale(6);
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  world.Seconds(700);  // what is made from now on has a budget of its own
  world.Kill("p1000");
  world.Seconds(3);
  EXPECT_EQ(world.pods_held(), 1U) << "five are there";
  world.Kill("p1001");
  for (int i = 0; i < 5; ++i) {
    world.Second();
    EXPECT_EQ(world.pods_held(), 0U) << "second " << i;
  }
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  EXPECT_EQ(Joined(world.violations()), "");
}

// A Job compiles beside as many pods as there is room for, when one more is needed to roll them
// out; in the end nobody needs the room, and it is built.
void RollOutBesideABuilder(const WorldSetup& setup, const fakes::NodeSetup& node, int replicas) {
  World world = WithTwoNodes(setup, api::Builder::kJob, node);
  world.Scale(replicas);
  world.Seconds(10);
  ASSERT_EQ(world.builder().in().jobs.size(), 1U);
  for (int i = 2; i < 5; ++i) {
    const int before = world.now();
    world.Rollout("r" + std::to_string(i), "server:1");
    const auto ready = world.UntilReady(kLong);
    ASSERT_TRUE(ready.has_value()) << Joined(world.violations());
    EXPECT_LE(*ready - before, replicas * (setup.cold_seconds + 2 + 8));
    world.Seconds(20);
  }
  ASSERT_TRUE(world.Settle(kLong));
  EXPECT_EQ(world.status().summary.nodes, "2/2");
  EXPECT_EQ(Joined(world.violations()), "");
}

TEST_P(EveryPromise, ABuilderTakesNoPlaceInTheQuotaFromARollout) {
  WorldSetup setup = SlowlyStarting();
  setup.quota = 5;
  RollOutBesideABuilder(setup, {}, 4);
}

TEST_P(EveryPromise, ABuilderTakesNoDeviceThatARolloutNeeds) {
  WorldSetup setup = SlowlyStarting();
  setup.devices = 1;
  RollOutBesideABuilder(setup, {.gpu_type = fakes::kH100, .gpus = 2}, 3);
}

TEST_P(EveryPromise, AYoungerWarmupOfTheSamePodsDoesNothingUntilTheOlderIsGone) {
  World world(Seeded());
  world.builder().in().others = {{.name = "first", .older = true, .labels = {{"app", "llama"}}}};
  world.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  for (const char* name : {"n1", "n2"}) {
    world.AddNode({.name = name});
  }
  world.builder().reported("n1").prepared = {"image"};
  world.builder().reported("n2").prepared = {"image"};
  world.Scale(4);
  ASSERT_TRUE(world.UntilReady(kLong).has_value());
  EXPECT_FALSE(world.status().injection.has_value());
  EXPECT_TRUE(world.status().builders.empty());
  for (const char* name : {"n1", "n2"}) {
    EXPECT_TRUE(world.builder().cache(name).spec.warmups.empty());
  }
  world.builder().in().others.clear();
  world.Seconds(5);
  ASSERT_TRUE(world.status().injection.has_value());
  EXPECT_EQ(world.starts_ended(), 4U) << "pods that run are left alone";
  world.Scale(6);
  ASSERT_TRUE(world.Settle(300));
  EXPECT_EQ(world.elections(world.builder().Key("n1")), 1);
  EXPECT_EQ(world.status().summary.nodes, "2/2");
  EXPECT_EQ(Joined(world.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryPromise, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
