// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/durable_trees.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <semaphore>
#include <string>
#include <variant>

#include "agent/tree/durable.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/scan.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

class DurableTreesTest : public ::testing::Test, protected Workbench {
 protected:
  DurableTreesTest() { trees_.emplace(context_); }

  // Fetches and activates a tree of these files. Returns its generation.
  std::string Activated(const std::map<std::string, std::string>& files) {
    const auto published = PublishFiles(files);
    EXPECT_TRUE(published.ok()) << published.status();
    const Fetch step = FetchOf({published->publication.digest});
    EXPECT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
    EXPECT_TRUE(ActivateGeneration(root_.dir(), kMount, step.generation, {}).ok());
    return step.generation;
  }

  void Update() { trees_->Update(*ScanInventory(root_.dir())); }
  bool IsMarked(const std::string& generation) const { return IsDurable(root_.dir(), generation); }

  std::counting_semaphore<> ended_{0};
  bundle::WorkerPool workers_{1};
  const Context context_ = ContextWith(workers_, [this] { ended_.release(); });
  std::optional<DurableTrees> trees_;
};

TEST_F(DurableTreesTest, ATreeIsMarkedAfterItsActivation) {
  const std::string tree = Activated({{kIndexFile, "index"}});
  EXPECT_FALSE(IsMarked(tree)) << "the activation does not wait for the disk";
  Update();
  EXPECT_EQ(trees_->running(), tree);
  ended_.acquire();
  Update();
  EXPECT_TRUE(IsMarked(tree));
  EXPECT_EQ(trees_->running(), "");
}

TEST_F(DurableTreesTest, ARestartedAgentCompletesTheMark) {
  const std::string tree = Activated({{kIndexFile, "index"}});
  trees_.emplace(context_);
  Update();
  ended_.acquire();
  EXPECT_TRUE(IsMarked(tree));
}

TEST_F(DurableTreesTest, ATreeWithoutALinkIsSyncedWhenItIsActiveAgain) {
  const std::string first = Activated({{kIndexFile, "first"}});
  const std::string second = Activated({{kIndexFile, "second"}});
  Update();
  EXPECT_EQ(trees_->running(), second);
  ended_.acquire();
  Update();
  EXPECT_EQ(trees_->running(), "");
  ASSERT_TRUE(ActivateGeneration(root_.dir(), kMount, first, {}).ok());
  Update();
  ended_.acquire();
  EXPECT_TRUE(IsMarked(first));
}

TEST_F(DurableTreesTest, StopsBetweenFilesAndLeavesNoMark) {
  std::map<std::string, std::string> files;
  for (int i = 0; i < 100; ++i) {
    files["inductor/fxgraph/ab/fabc/entry" + std::to_string(i)] = "index " + std::to_string(i);
  }
  const std::string tree = Activated(files);
  Update();        // pauses after some files, because the clock stands still
  trees_.reset();  // returns
  EXPECT_FALSE(IsMarked(tree));
}

TEST_F(DurableTreesTest, ATreeThatCannotBeSyncedIsReportedOnce) {
  const std::string tree = Activated({{kIndexFile, "index"}});
  const Inventory inventory = *ScanInventory(root_.dir());
  ASSERT_TRUE(RemoveGenerationRecords(root_.dir(), tree).ok());
  trees_->Update(inventory);
  ended_.acquire();
  trees_->Update(inventory);
  EXPECT_EQ(trees_->running(), "") << "it is not tried again";
  EXPECT_FALSE(IsMarked(tree));
  EXPECT_NE(log_.Text().find("cannot write a tree to the disk"), std::string::npos);
}

}  // namespace
}  // namespace cachewarm::agent
