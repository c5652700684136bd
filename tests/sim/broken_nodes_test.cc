// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/joined.h"
#include "tests/sim/sim_cluster.h"

// 1,000 nodes of which one in twenty never gets a bundle.
namespace cachewarm::sim {
namespace {

constexpr int kNodes = 1'000;

std::string NodeName(int i) {
  return fmt::format("n{:03}", i);
}

SimCluster WithBrokenNodes() {
  SimCluster cluster({.mode = api::GateMode::kAuto, .pods_per_second = 20});
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  cluster.builder().in().settings.fetch_nodes_max = kNodes;
  for (int i = 0; i < kNodes; ++i) {
    cluster.AddNode({.name = NodeName(i)});
    if (i % 20 == 0) {
      cluster.BreakFetches(NodeName(i));
    }
  }
  cluster.RunSeconds(4);
  cluster.Scale(10);
  return cluster;
}

TEST(BrokenNodes, OneInTwentyGatesNoPodOfAWarmWorkload) {
  SimCluster cluster = WithBrokenNodes();
  cluster.RunSeconds(30);
  ASSERT_EQ(cluster.status().summary.nodes, "950/1000") << Joined(cluster.violations());
  const size_t gated = cluster.gated_ever();

  cluster.Scale(60);
  cluster.RunSeconds(8);
  EXPECT_EQ(cluster.gated_ever(), gated);
  EXPECT_EQ(cluster.pods_injected(), 60U);
  EXPECT_EQ(cluster.pods_held(), 0U);

  cluster.OperatorDown(true);
  cluster.RunSeconds(2);
  cluster.Scale(120);
  cluster.RunSeconds(8);
  EXPECT_EQ(cluster.gated_ever(), gated) << "also while no operator runs";
  EXPECT_EQ(cluster.pods_injected(), 120U);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

}  // namespace
}  // namespace cachewarm::sim
