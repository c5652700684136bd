// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_cluster.h"

// A rolling update of a workload that also scales out: nodes have the bundle of the earlier image
// when pods of the new one start there, and get the new bundle while these pods compile.
namespace cachewarm::sim {
namespace {

constexpr int kPastRebuildDelay = 700;  // seconds; a miss has a bundle rebuilt after ten minutes

class EveryRollingUpdate : public testing::TestWithParam<int> {};

TEST_P(EveryRollingUpdate, StartsBeforeTheirNodeHadTheBundleElectNoRebuild) {
  SimCluster cluster({.seed = static_cast<uint32_t>(GetParam()),
                      .cold_seconds = 40,
                      .fetch_seconds = 12,
                      .mode = api::GateMode::kNever,
                      .pods_per_second = 4});
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  for (int i = 0; i < 6; ++i) {
    cluster.AddNode({.name = "n" + std::to_string(i), .pods = 4});
  }
  cluster.RunSeconds(5);
  cluster.Scale(6);
  ASSERT_TRUE(cluster.Settle(400)) << Joined(cluster.violations());
  const std::string key = cluster.builder().Key("n0", "server:2");
  const int earlier = cluster.counted(api::StartResult::kCold);

  cluster.Rollout("r2", "server:2");
  for (int i = 0; i < 400 && cluster.status().bundles.size() < 2; ++i) {
    cluster.RunSecond();
  }
  ASSERT_EQ(cluster.status().bundles.size(), 2U);
  cluster.Scale(20);
  ASSERT_TRUE(cluster.Settle(2'000)) << Joined(cluster.violations());
  EXPECT_GT(cluster.counted(api::StartResult::kCold), earlier) << "the case was reached";
  EXPECT_EQ(cluster.counted(api::StartResult::kMiss), 0);

  cluster.PassSeconds(kPastRebuildDelay);
  cluster.RunSeconds(60);
  EXPECT_EQ(cluster.elections(key), 1) << "no rebuild";
  EXPECT_EQ(cluster.status().bundles.size(), 2U);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryRollingUpdate, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
