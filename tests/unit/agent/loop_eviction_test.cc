// SPDX-License-Identifier: Apache-2.0
// Eviction as the loop does it: the test plays the operator, which confirms what the status offers.
#include <filesystem>

#include "agent/sync/tree_names.h"
#include "lib/api/reasons.h"
#include "tests/unit/agent/loop_fixture.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;
using std::chrono::seconds;

class LoopEvictionTest : public LoopTest {
 protected:
  Digest PublishSized(int number, size_t bytes = 100'000) {
    return Publish({{kIndexFile, std::to_string(number) + std::string(bytes, 'x')}});
  }
  // Makes `digests` active, as a rollout does.
  std::string Roll(const std::vector<Digest>& digests) {
    clock_.Advance(seconds(60));
    Want(digests);
    EXPECT_TRUE(IterateUntilActive()) << Bundle(0).message;
    loop_->RunIteration();
    return Warmup().generation;
  }
  void ConfirmAll(const std::vector<Digest>& digests) {
    spec_.evict = status_.evictable;
    Want(digests);
    loop_->RunIteration();
  }
  // No tree is offered while it is being synced to the disk.
  bool IterateUntilOffered(const std::string& generation) {
    return IterateUntil([&] { return IsOffered(generation); });
  }
  bool IsOffered(const std::string& generation) const {
    return std::any_of(status_.evictable.begin(), status_.evictable.end(),
                       [&](const auto& each) { return each.generation == generation; });
  }
  bool TrashIsEmpty() { return stdfs::is_empty(root_ / std::string(kTrash)); }
};

TEST_F(LoopEvictionTest, RemovesASupersededTreeOnceItIsConfirmed) {
  const std::vector<Digest> third = {PublishSized(3)};
  const std::string first = Roll({PublishSized(1)});
  const std::string second = Roll({PublishSized(2)});
  Roll(third);
  ASSERT_TRUE(IterateUntilOffered(first));
  EXPECT_TRUE(IsOffered(ColdId(kMount, 0)));
  EXPECT_FALSE(IsOffered(second)) << "one generation is retained";
  EXPECT_GT(status_.node.root.evictable_bytes, 100'000);
  EXPECT_TRUE(root_.Exists(GenerationPath(first))) << "not confirmed yet";
  const int64_t used = status_.node.root.used_bytes;

  ConfirmAll(third);
  EXPECT_FALSE(root_.Exists(GenerationPath(first)));
  EXPECT_FALSE(watcher_.trees().contains(first));
  EXPECT_TRUE(status_.evictable.empty());
  ASSERT_TRUE(IterateUntil([&] { return TrashIsEmpty(); }));
  ASSERT_TRUE(IterateUntil([&] { return status_.node.root.used_bytes < used - 90'000; }));
  EXPECT_GT(status_.node.root.evicted_bytes, 100'000);
  EXPECT_TRUE(root_.Exists(GenerationPath(second)));
  EXPECT_EQ(Shown().size(), 1U);
}

TEST_F(LoopEvictionTest, KeepsATreeThatIsActiveAgain) {
  spec_.warmups.clear();
  const std::vector<Digest> first_bundles = {PublishSized(1)};
  const std::string first = Roll(first_bundles);
  Roll({PublishSized(2)});
  Roll({PublishSized(3)});
  ASSERT_TRUE(IterateUntilOffered(first));
  spec_.evict = status_.evictable;
  Roll(first_bundles);  // a rollback, planned before the confirmations are looked at
  loop_->RunIteration();
  EXPECT_EQ(Warmup().generation, first);
  EXPECT_EQ(Shown().size(), 1U);
}

TEST_F(LoopEvictionTest, AConfirmationForAnEarlierUnlinkRemovesNothing) {
  const std::vector<Digest> third = {PublishSized(3)};
  const std::string first = Roll({PublishSized(1)});
  Roll({PublishSized(2)});
  Roll(third);
  ASSERT_TRUE(IterateUntilOffered(first));
  for (api::EvictableTree tree : status_.evictable) {
    tree.unlinked_time -= seconds(1);
    spec_.evict.push_back(tree);
  }
  Want(third);
  loop_->RunIteration();
  EXPECT_TRUE(root_.Exists(GenerationPath(first)));
}

TEST_F(LoopEvictionTest, ADeletedWarmupLeavesNothing) {
  Roll({PublishSized(1)});
  api::NodeCache node_cache{.name = "node-a", .uid = "nc-1"};
  loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
  loop_->RunIteration();
  EXPECT_TRUE(stdfs::is_directory(root_ / MountPath(kMount))) << "a pod may still use it";
  ASSERT_TRUE(IterateUntil([&] {
    node_cache.spec.evict = status_.evictable;
    loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
    return stdfs::is_empty(root_ / std::string(kGenerations)) && TrashIsEmpty();
  }));
  EXPECT_FALSE(root_.Exists(kMount.ns));
  EXPECT_TRUE(watcher_.trees().empty());
  EXPECT_TRUE(stdfs::is_empty(root_ / std::string(kLinkRecords)));
  EXPECT_TRUE(stdfs::is_empty(root_ / std::string(kGenerationRecords)));
  EXPECT_TRUE(stdfs::is_empty(root_ / std::string(kDamagedRecords)));
}

TEST_F(LoopEvictionTest, ADirectoryThatKubeletMadeForADeletedWarmupIsEvictedToo) {
  root_.Write(MountPath(kMount) + "/inductor/f", "of a late pod");
  api::NodeCache node_cache{.name = "node-a", .uid = "nc-1"};
  loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
  ASSERT_TRUE(IterateUntil([&] {
    node_cache.spec.evict = status_.evictable;
    loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
    return stdfs::is_empty(root_ / std::string(kGenerations)) && !root_.Exists(kMount.ns);
  }));
}

TEST_F(LoopEvictionTest, MakesRoomForAFetchByRetainedTrees) {
  const std::vector<Digest> second_bundles = {PublishSized(2)};
  const std::vector<Digest> third = {PublishSized(3)};
  const std::string first = Roll({PublishSized(1)});
  const std::string second = Roll(second_bundles);
  ConfirmAll(second_bundles);
  ASSERT_TRUE(IterateUntil([&] { return !root_.Exists(GenerationPath(ColdId(kMount, 0))); }));
  ASSERT_TRUE(IterateUntil([&] { return TrashIsEmpty(); }));
  const int64_t limit = status_.node.root.used_bytes + 50'000;
  spec_.evict.clear();
  Restart({.limit_bytes = limit, .version = "test"});
  Want(third);
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kOverLimit) << Bundle(0).message;
  ASSERT_TRUE(IterateUntilOffered(first));
  EXPECT_FALSE(IsOffered(second)) << "mounted";
  ConfirmAll(third);
  ASSERT_TRUE(IterateUntilActive()) << Bundle(0).message;
  EXPECT_LE(status_.node.root.used_bytes, limit);
}

TEST_F(LoopEvictionTest, KeepsTreesOfAWarmupThatIsBeingCaptured) {
  Roll({PublishSized(1)});
  Roll({PublishSized(2)});
  spec_.captures = {Request()};
  Roll({PublishSized(3)});
  EXPECT_TRUE(status_.evictable.empty());
}

TEST_F(LoopEvictionTest, OffersNothingBeforeTheSpecIsKnown) {
  Roll({PublishSized(1)});
  Roll({PublishSized(2)});
  Roll({PublishSized(3)});
  ASSERT_FALSE(status_.evictable.empty());
  Restart();
  loop_->RunIteration();
  EXPECT_TRUE(status_.evictable.empty());
  EXPECT_TRUE(stdfs::is_directory(root_ / MountPath(kMount)));
}

TEST_F(LoopEvictionTest, EmptiesTheTrashOfAnEarlierProcess) {
  root_.Write(std::string(kTrash) + "/left.0/deep/f", "x");
  Want({});
  EXPECT_TRUE(IterateUntil([&] { return TrashIsEmpty(); }));
}

}  // namespace
}  // namespace cachewarm::agent
