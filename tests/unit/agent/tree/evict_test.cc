// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/evict.h"

#include <gtest/gtest.h>

#include <chrono>

#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;
using std::chrono::seconds;

const Mount kMount{"team", "llama", "uid-1", "image"};

WallTime At(int second) {
  return WallTime(seconds(1'700'000'000 + second));
}

class EvictTest : public ::testing::Test {
 protected:
  // Makes a tree with a record and switches the link to it.
  std::string Activate(int number, int second, const Mount& mount = kMount) {
    const std::vector<Digest> digests = {DigestOf(std::to_string(number))};
    std::string id = GenerationId(mount, digests);
    root_.Write(GenerationPath(id) + "/inductor/f", "x");
    EXPECT_TRUE(
        WriteGenerationRecord(root_.dir(), {.id = id, .mount = mount, .digests = digests}, {})
            .ok());
    EXPECT_TRUE(ActivateGeneration(root_.dir(), mount, id, {.now = At(second)}).ok());
    return id;
  }
  bool EmptyTheTrash() {
    for (int i = 0; i < 100; ++i) {
      const auto empty = EmptyTrash(root_.dir(), 1000);
      if (!empty.ok() || *empty) {
        return empty.ok();
      }
    }
    return false;
  }
  bool IsEmpty(const std::string& folder) { return stdfs::is_empty(root_ / folder); }

  Root root_;
  std::string tree_;
};

TEST_F(EvictTest, TakesATreeAndItsRecordsAway) {
  const std::string first = Activate(1, 10);
  const std::string second = Activate(2, 20);
  ASSERT_TRUE(
      Evict(root_.dir(), {.name = first, .warmup_uid = kMount.uid, .run_as = kMount.run_as}).ok());
  EXPECT_FALSE(root_.Exists(GenerationPath(first)));
  EXPECT_TRUE(root_.Exists(GenerationPath(second)));
  EXPECT_FALSE(root_.Exists(GenerationRecordPath(first)));
  EXPECT_FALSE(root_.Exists(EntriesRecordPath(first)));
  EXPECT_TRUE(root_.Exists(LinkRecordPath(kMount))) << "the mount still exists";
  EXPECT_FALSE(IsEmpty(".trash")) << "the files are removed later";
  EXPECT_TRUE(EmptyTheTrash());
  EXPECT_TRUE(IsEmpty(".trash"));
  EXPECT_TRUE(stdfs::is_directory(root_ / MountPath(kMount)));
}

TEST_F(EvictTest, TheLastTreeOfAMountLeavesNothing) {
  const std::string tree = Activate(1, 10);
  ASSERT_TRUE(
      Evict(root_.dir(),
            {.name = tree, .link = kMount, .warmup_uid = kMount.uid, .run_as = kMount.run_as})
          .ok());
  EXPECT_TRUE(EmptyTheTrash());
  EXPECT_FALSE(root_.Exists("team"));
  EXPECT_TRUE(IsEmpty(".gen"));
  EXPECT_TRUE(IsEmpty(".state/links"));
  EXPECT_TRUE(IsEmpty(".state/generations"));
}

TEST_F(EvictTest, KeepsFoldersOfOtherMounts) {
  const Mount other{"team", "llama", "uid-1", "u1000"};
  const std::string tree = Activate(1, 10);
  Activate(1, 10, other);
  ASSERT_TRUE(
      Evict(root_.dir(),
            {.name = tree, .link = kMount, .warmup_uid = kMount.uid, .run_as = kMount.run_as})
          .ok());
  EXPECT_TRUE(stdfs::is_directory(root_ / MountPath(other)));
}

TEST_F(EvictTest, ATreeOfTheSameNameCanBeEvictedAgainBeforeTheTrashIsEmpty) {
  for (int i = 0; i < 3; ++i) {
    const std::string tree = Activate(1, 10 + i);
    ASSERT_TRUE(Evict(root_.dir(), {.name = tree}).ok());
  }
  EXPECT_TRUE(EmptyTheTrash());
  EXPECT_TRUE(Evict(root_.dir(), {.name = "0123"}).ok()) << "a tree that is gone already";
}

TEST_F(EvictTest, EmptyFoldersOfAnInterruptedEvictionAreRemoved) {
  Activate(1, 10);
  stdfs::create_directories(root_ / "team/llama/uid-9");
  stdfs::create_directories(root_ / "other/ns/uid-9");
  stdfs::create_directories(root_ / "lost+found");
  ASSERT_TRUE(RemoveEmptyFolders(root_.dir()).ok());
  EXPECT_FALSE(root_.Exists("team/llama/uid-9"));
  EXPECT_FALSE(root_.Exists("other"));
  EXPECT_TRUE(root_.Exists("lost+found"));
  EXPECT_TRUE(stdfs::is_directory(root_ / MountPath(kMount)));
}

TEST_F(EvictTest, AnUnusedHistoryIsRemovedAtStart) {
  Activate(1, 10);
  stdfs::remove_all(root_ / "team");
  ASSERT_TRUE(RepairJournal(root_.dir(), At(99)).ok());
  EXPECT_FALSE(IsEmpty(".state/links")) << "its tree exists, and shows when it was unlinked";
  stdfs::remove_all(root_ / ".gen");
  stdfs::create_directory(root_ / ".gen");
  ASSERT_TRUE(RepairJournal(root_.dir(), At(99)).ok());
  EXPECT_TRUE(IsEmpty(".state/links"));
}

TEST_F(EvictTest, AScanKnowsOwnerAndUnlinkTimeOfEachTree) {
  ASSERT_TRUE(PrepareMount(root_.dir(), kMount, {.now = At(5)}).ok());
  const std::string first = Activate(1, 10);
  const std::string second = Activate(2, 20);
  const auto inventory = ScanInventory(root_.dir());
  ASSERT_TRUE(inventory.ok());
  const Generation& cold = inventory->generations.at(ColdId(kMount, 0));
  EXPECT_EQ(cold.warmup_uid, kMount.uid);
  EXPECT_EQ(cold.unlinked_time, At(10));
  EXPECT_EQ(inventory->generations.at(first).unlinked_time, At(20));
  EXPECT_EQ(inventory->generations.at(second).unlinked_time, WallTime{}) << "linked";
}

TEST_F(EvictTest, AScanWithACacheFindsEveryChangeOfARecord) {
  ScanCache cache;
  const auto expect_same = [&](const char* after) {
    const auto cached = ScanInventory(root_.dir(), cache);
    const auto read = ScanInventory(root_.dir());
    ASSERT_TRUE(cached.ok() && read.ok());
    EXPECT_EQ(cached->links, read->links) << after;
    EXPECT_EQ(cached->generations, read->generations) << after;
    EXPECT_EQ(cache.trees.size(), stdfs::exists(root_ / GenerationRecordPath(tree_)) ? 2U : 1U)
        << after;
  };
  tree_ = Activate(1, 10);
  Activate(2, 20);
  expect_same("activations");
  ASSERT_TRUE(ActivateGeneration(root_.dir(), kMount, tree_, {.now = At(30)}).ok());
  expect_same("a switch back");
  GenerationRecord record = *ReadGenerationRecord(root_.dir(), tree_);
  record.usage = {.bytes = 4096, .inodes = 1};
  ASSERT_TRUE(WriteGenerationRecord(root_.dir(), record, {}).ok());
  expect_same("another record");
  Activate(2, 40);
  ASSERT_TRUE(Evict(root_.dir(), {.name = tree_, .warmup_uid = "uid-1", .run_as = "image"}).ok());
  expect_same("an eviction");
}

TEST_F(EvictTest, AClockThatWasSetBackMakesNoUnlinkTimeEarlier) {
  const std::string first = Activate(1, 100);
  Activate(2, 20);
  EXPECT_EQ(ScanInventory(root_.dir())->generations.at(first).unlinked_time, At(100));
}

TEST_F(EvictTest, ATreeThatIsActiveAgainIsLinked) {
  const std::string first = Activate(1, 10);
  Activate(2, 20);
  ASSERT_TRUE(ActivateGeneration(root_.dir(), kMount, first, {.now = At(30)}).ok());
  const auto inventory = ScanInventory(root_.dir());
  EXPECT_EQ(inventory->generations.at(first).unlinked_time, WallTime{});
}

TEST_F(EvictTest, TheHistoryOfAMountWithoutPathStillHasTheUnlinkTime) {
  const std::string first = Activate(1, 10);
  Activate(2, 20);
  stdfs::remove_all(root_ / "team");
  const auto inventory = ScanInventory(root_.dir());
  EXPECT_EQ(inventory->generations.at(first).unlinked_time, At(20));
  EXPECT_EQ(inventory->generations.at(first).warmup_uid, kMount.uid);
}

}  // namespace
}  // namespace cachewarm::agent
