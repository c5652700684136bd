// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/redis_trees.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "agent/tree/root_layout.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using Paths = std::set<std::string>;

class RedisTreesTest : public ::testing::Test, protected Workbench {
 protected:
  // Makes `generation` the active tree of kMount.
  void Activate(const std::string& generation) {
    ASSERT_TRUE(root_.dir().MakeDirs(GenerationPath(generation), kTreeMode).ok());
    inventory_.generations.try_emplace(generation);
    inventory_.links[kMount].generation = generation;
  }
  void SelectCaches(const std::vector<api::CacheChoice>& caches) {
    tables_.Update({{.uid = kMount.uid,
                     .ns = kMount.ns,
                     .name = kMount.name,
                     .run_as = {kMount.run_as},
                     .caches = caches}});
  }
  Paths Update() {
    watched_.Update(inventory_);
    return redis_trees_.Update(inventory_);
  }

  bundle::WorkerPool workers_{1, 1};
  const Context context_ = ContextWith(workers_);
  Inventory inventory_;
  Tables tables_;
  WatchedTrees watched_{context_};
  RedisTrees redis_trees_{tables_, watched_};
};

TEST_F(RedisTreesTest, OnlyTreesOfWarmupsWithThePresetAreSelected) {
  SelectCaches({{.name = "triton"}});
  Activate("a");
  EXPECT_EQ(Update(), Paths{});
  SelectCaches({{.name = "torchinductor-redis"}});
  EXPECT_EQ(Update(), Paths{GenerationPath("a")});
  SelectCaches({{.name = "triton"}});
  EXPECT_EQ(Update(), Paths{});
}

TEST_F(RedisTreesTest, ReplacedTreeStaysSelectedWhileItIsWatched) {
  SelectCaches({{.name = "torchinductor-redis"}});
  Activate("a");
  EXPECT_EQ(Update(), Paths{GenerationPath("a")});
  Activate("b");
  EXPECT_EQ(Update(), (Paths{GenerationPath("a"), GenerationPath("b")}));
  watched_.Remove("a");
  inventory_.generations.erase("a");
  EXPECT_EQ(Update(), Paths{GenerationPath("b")});
}

}  // namespace
}  // namespace cachewarm::agent
