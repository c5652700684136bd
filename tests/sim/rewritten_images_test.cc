// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/joined.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_cluster.h"

// A cluster whose admission rewrites the image of every new pod, also of builder Jobs.
namespace cachewarm::sim {
namespace {

class EveryMirror : public testing::TestWithParam<int> {
 protected:
  SimCluster Mirrored() const {
    SimCluster cluster({.seed = static_cast<uint32_t>(GetParam()), .replicas = 0, .mirror = "m/"});
    cluster.AddNode({.name = "n1"});
    cluster.AddNode({.name = "n2"});
    return cluster;
  }
};

TEST_P(EveryMirror, FirstPodBuildsOnceAndLaterPodsHit) {
  SimCluster cluster = Mirrored();
  cluster.builder().warmup().spec.compile.builder = api::Builder::kFirstPod;
  cluster.RunSeconds(5);
  cluster.Scale(4);
  ASSERT_TRUE(cluster.Settle(200)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.elections(cluster.builder().Key("n1", "m/server:1")), 1);
  EXPECT_EQ(cluster.status().summary.nodes, "2/2");
  cluster.builder().in().dry_run = {};  // the operator restarts
  const int warm_since = cluster.now();
  cluster.Scale(10);
  ASSERT_TRUE(cluster.Settle(200)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.hits_after(warm_since), 6);
  EXPECT_EQ(cluster.misses_after(warm_since), 0);
  EXPECT_EQ(cluster.status().builders.size(), 1U);
  EXPECT_EQ(Joined(cluster.violations()), "");
}

TEST_P(EveryMirror, OneJobBuildsForEachTemplate) {
  SimCluster cluster = Mirrored();
  ASSERT_TRUE(cluster.Settle(200)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.status().summary.nodes, "2/2");
  cluster.Rollout("r2", "server:2");
  ASSERT_TRUE(cluster.Settle(200)) << Joined(cluster.violations());
  EXPECT_EQ(cluster.status().summary.nodes, "2/2");
  for (const char* image : {"m/server:1", "m/server:2"}) {
    EXPECT_EQ(cluster.elections(cluster.builder().Key("n1", image)), 1) << image;
  }
  for (const char* image : {"server:1", "server:2"}) {
    EXPECT_EQ(cluster.elections(cluster.builder().Key("n1", image)), 0) << image;
  }
  EXPECT_TRUE(cluster.builder().in().jobs.empty());
  EXPECT_EQ(Joined(cluster.violations()), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, EveryMirror, testing::Range(1, Seeds() + 1));

}  // namespace
}  // namespace cachewarm::sim
