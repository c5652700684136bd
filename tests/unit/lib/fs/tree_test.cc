// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/fs/file.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::fs {
namespace {

std::vector<std::string> PathsBelow(const Dir& dir, const std::string& path = "") {
  std::vector<std::string> paths;
  EXPECT_TRUE(Walk(dir, path, {}, [&paths](const WalkEntry& entry) {
                paths.push_back(entry.path);
                return WalkNext::kContinue;
              }).ok());
  return paths;
}

class TreeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(dir_.MakeDirs("tree/b/deep", 0755).ok());
    ASSERT_TRUE(dir_.MakeDirs("outside", 0755).ok());
    for (const std::string path : {"tree/b/deep/f", "tree/b/f", "tree/c", "tree/a", "outside/f"}) {
      ASSERT_TRUE(WriteFileAtomic(dir_, path, "12345", 0644).ok());
    }
    ASSERT_TRUE(ReplaceLink(dir_, "tree/link", "../outside").ok());
    ASSERT_TRUE(ReplaceLink(dir_, "tree/dangling", "nowhere").ok());
    ASSERT_EQ(::mkfifo((temp_ / "tree/fifo").c_str(), 0644), 0);
  }

  TempDir temp_;
  Dir dir_ = temp_.Open();
};

TEST_F(TreeTest, WalkIsOrderedAndFollowsNoLinks) {
  const std::vector<std::string> expected = {"a", "b",        "b/deep", "b/deep/f", "b/f",
                                             "c", "dangling", "fifo",   "link"};
  EXPECT_EQ(PathsBelow(dir_, "tree"), expected);
}

TEST_F(TreeTest, WalkReportsTypes) {
  int files = 0;
  int directories = 0;
  int links = 0;
  int others = 0;
  ASSERT_TRUE(Walk(dir_, "tree", {}, [&](const WalkEntry& entry) {
                files += entry.stat.type == FileType::kFile;
                directories += entry.stat.type == FileType::kDirectory;
                links += entry.stat.type == FileType::kSymlink;
                others += entry.stat.type == FileType::kOther;
                return WalkNext::kContinue;
              }).ok());
  EXPECT_EQ(files, 4);
  EXPECT_EQ(directories, 2);
  EXPECT_EQ(links, 2);
  EXPECT_EQ(others, 1);
}

TEST_F(TreeTest, VisitorSkipsAndStops) {
  std::vector<std::string> seen;
  ASSERT_TRUE(Walk(dir_, "tree", {}, [&seen](const WalkEntry& entry) {
                seen.push_back(entry.path);
                return entry.path == "b"   ? WalkNext::kSkipDirectory
                       : entry.path == "c" ? WalkNext::kStop
                                           : WalkNext::kContinue;
              }).ok());
  const std::vector<std::string> expected = {"a", "b", "c"};
  EXPECT_EQ(seen, expected);
}

TEST_F(TreeTest, WalkEnforcesLimits) {
  const auto go_on = [](const WalkEntry&) { return WalkNext::kContinue; };
  EXPECT_TRUE(Walk(dir_, "tree", {.entries_max = 9}, go_on).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Walk(dir_, "tree", {.entries_max = 8}, go_on)));
  EXPECT_TRUE(Walk(dir_, "tree", {.depth_max = 3}, go_on).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Walk(dir_, "tree", {.depth_max = 2}, go_on)));
  EXPECT_TRUE(absl::IsNotFound(Walk(dir_, "none", {}, go_on)));
  EXPECT_TRUE(absl::IsPermissionDenied(Walk(dir_, "tree/link", {}, go_on)));
}

TEST_F(TreeTest, WalkToleratesChangingDirectory) {
  std::jthread changer([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      EXPECT_TRUE(dir_.MakeDirs("tree/b/new/deeper", 0755).ok());
      EXPECT_TRUE(WriteFileAtomic(dir_, "tree/b/new/deeper/f", "x", 0644).ok());
      EXPECT_TRUE(RemoveTree(dir_, "tree/b/new").ok());
    }
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(MeasureTree(dir_, "tree").ok());
  }
}

TEST_F(TreeTest, RemoveTreeRemovesNothingElse) {
  ASSERT_TRUE(RemoveTree(dir_, "tree").ok());
  EXPECT_FALSE(*dir_.Exists("tree"));
  EXPECT_EQ(*ReadFile(dir_, "outside/f", 10), "12345");
  EXPECT_TRUE(RemoveTree(dir_, "tree").ok());
  EXPECT_TRUE(RemoveTree(dir_, "tree/b").ok());
}

TEST_F(TreeTest, RemovingALinkRemovesTheLink) {
  ASSERT_TRUE(RemoveTree(dir_, "tree/link").ok());
  EXPECT_FALSE(*dir_.Exists("tree/link"));
  EXPECT_TRUE(*dir_.Exists("outside/f"));
  ASSERT_TRUE(ReplaceLink(dir_, "tree/link", "../outside").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(RemoveTree(dir_, "tree/link/f")));
  EXPECT_TRUE(*dir_.Exists("outside/f"));
}

TEST_F(TreeTest, RemoveTreeEnforcesLimits) {
  EXPECT_TRUE(absl::IsResourceExhausted(RemoveTree(dir_, "tree", {.depth_max = 2})));
  EXPECT_TRUE(absl::IsResourceExhausted(RemoveTree(dir_, "tree", {.entries_max = 2})));
  EXPECT_TRUE(absl::IsInvalidArgument(RemoveTree(dir_, "")));
  EXPECT_TRUE(absl::IsInvalidArgument(RemoveTree(dir_, "..")));
  EXPECT_TRUE(RemoveTree(dir_, "tree").ok());
}

TEST_F(TreeTest, RemovesReadOnlyDirectories) {
  ASSERT_TRUE(dir_.SetMode("tree/b/deep", 0555).ok());
  ASSERT_TRUE(dir_.SetMode("tree/b", 0555).ok());
  EXPECT_TRUE(RemoveTree(dir_, "tree").ok());
}

TEST_F(TreeTest, UsageCountsFilesAndBytes) {
  const auto usage = MeasureTree(dir_, "tree");
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->files, 4);
  EXPECT_EQ(usage->bytes, 20);
  EXPECT_GE(usage->allocated_bytes, usage->bytes);
}

TEST_F(TreeTest, SpaceDescribesTheFileSystem) {
  const auto space = MeasureSpace(dir_);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_GT(space->total_bytes, 0);
  EXPECT_GE(space->total_bytes, space->free_bytes);
  EXPECT_FALSE(space->read_only);
}

TEST_F(TreeTest, RemoveSomeRemovesInPartsAndFollowsNoLinks) {
  int calls = 0;
  for (bool gone = false; !gone; ++calls) {
    const auto removed = RemoveSome(dir_, "tree", 3);
    ASSERT_TRUE(removed.ok()) << removed.status();
    gone = *removed;
    ASSERT_LT(calls, 100);
  }
  EXPECT_GT(calls, 2) << "each call has a limit";
  EXPECT_EQ(PathsBelow(dir_), (std::vector<std::string>{"outside", "outside/f"}));
  EXPECT_TRUE(*RemoveSome(dir_, "tree", 3)) << "gone already";
}

TEST_F(TreeTest, RemoveSomeRemovesWhatRemoveTreeRejects) {
  std::string path = "deep";
  for (int level = 0; level < 300; ++level) {
    path += "/d";
  }
  ASSERT_TRUE(dir_.MakeDirs(path, 0755).ok());
  ASSERT_FALSE(RemoveTree(dir_, "deep").ok());
  ASSERT_TRUE(dir_.MakeDirs("trash", 0755).ok());
  ASSERT_TRUE(dir_.Rename("deep", "trash/deep").ok());
  const auto names = [&] {
    std::vector<std::string> found;
    EXPECT_TRUE(Walk(dir_, "trash", {}, [&found](const WalkEntry& entry) {
                  found.push_back(entry.path);
                  return WalkNext::kSkipDirectory;
                }).ok());
    return found;
  };
  for (int i = 0; i < 100 && !names().empty(); ++i) {
    ASSERT_TRUE(RemoveSome(dir_, "trash/" + names().front(), 1000).ok());
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(TreeTest, MoveContentLeavesTheDirectoryEmptyForItsUsers) {
  const Dir used = *dir_.OpenDir("tree");
  const std::vector<std::string> before = PathsBelow(used);
  ASSERT_FALSE(before.empty());
  ASSERT_TRUE(dir_.MakeDirs("aside", 0755).ok());
  ASSERT_TRUE(MoveContent(dir_, "tree", "aside").ok());
  EXPECT_TRUE(PathsBelow(used).empty());
  EXPECT_EQ(PathsBelow(*dir_.OpenDir("aside")), before);
  EXPECT_TRUE(dir_.Exists("outside/f").value()) << "no link was followed";
}

TEST_F(TreeTest, MoveContentMovesMoreNamesThanItReadsAtOnceAndKeepsExistingOnes) {
  ASSERT_TRUE(dir_.MakeDirs("many", 0755).ok());
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(dir_.MakeDir("many/" + std::to_string(i), 0755).ok());
  }
  ASSERT_TRUE(dir_.MakeDirs("aside/7", 0755).ok());
  ASSERT_TRUE(MoveContent(dir_, "many", "aside").ok());
  EXPECT_EQ(PathsBelow(*dir_.OpenDir("many")), std::vector<std::string>{"7"});
  EXPECT_EQ(PathsBelow(*dir_.OpenDir("aside")).size(), 5000U);
  EXPECT_TRUE(absl::IsNotFound(MoveContent(dir_, "absent", "aside")));
}

TEST_F(TreeTest, MeasuresAHardLinkAsAShareOfItsFile) {
  ASSERT_TRUE(dir_.MakeDirs("one", 0755).ok());
  ASSERT_TRUE(WriteFileAtomic(dir_, "one/f", std::string(100'000, 'x'), 0644).ok());
  const auto alone = MeasureTree(dir_, "one");
  ASSERT_TRUE(dir_.MakeDirs("two", 0755).ok());
  ASSERT_TRUE(dir_.LinkTo("one/f", dir_, "two/f").ok());
  const auto one = MeasureTree(dir_, "one");
  EXPECT_EQ(one->allocated_bytes * 2, alone->allocated_bytes);
  EXPECT_EQ(MeasureTree(dir_, "two")->allocated_bytes, one->allocated_bytes);
}

}  // namespace
}  // namespace cachewarm::fs
