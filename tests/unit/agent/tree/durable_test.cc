// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/durable.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

const Mount kMount{"team", "llama", "uid-1", "image"};
const std::string kTree(32, 'a');

// A tree of two files, with records and without a mark.
class DurableTest : public ::testing::Test {
 protected:
  DurableTest() {
    std::vector<EntryRecord> entries;
    for (const std::string path : {"inductor/ab/x.py", "inductor/y.so"}) {
      root_.Write(GenerationPath(kTree) + "/" + path, "code");
      const auto stat = root_.dir().Stat(GenerationPath(kTree) + "/" + path);
      entries.push_back(
          {.path = path, .kind = "inductor", .digest = DigestOf("code"), .inode = stat->inode});
    }
    EXPECT_TRUE(WriteGenerationRecord(root_.dir(), {.id = kTree, .mount = kMount}, entries).ok());
  }

  absl::Status Make(const std::stop_token& stop = {}) {
    return MakeDurable({.root = root_.dir(),
                        .generation = kTree,
                        .before_open =
                            [this](const std::string& path) {
                              opened_.insert(path);
                              return before_open_;
                            }},
                       stop);
  }

  Root root_;
  std::set<std::string> opened_;
  absl::Status before_open_;
};

TEST_F(DurableTest, MarksATreeAfterItsSync) {
  EXPECT_FALSE(IsDurable(root_.dir(), kTree));
  ASSERT_TRUE(Make().ok());
  EXPECT_TRUE(IsDurable(root_.dir(), kTree));
  EXPECT_EQ(opened_, (std::set<std::string>{"inductor/ab/x.py", "inductor/y.so"}))
      << "the watcher must know of every open";
}

TEST_F(DurableTest, SkipsFilesThatEnginesReplacedOrRemoved) {
  stdfs::remove_all(root_ / (GenerationPath(kTree) + "/inductor/ab"));
  const stdfs::path object = root_ / (GenerationPath(kTree) + "/inductor/y.so");
  stdfs::remove(object);
  ASSERT_EQ(::mkfifo(object.c_str(), 0666), 0);
  EXPECT_TRUE(Make().ok());
  stdfs::remove(object);
  stdfs::create_symlink("/etc/passwd", object);
  EXPECT_TRUE(Make().ok());
  stdfs::remove(object);
  stdfs::create_directory(object);
  EXPECT_TRUE(Make().ok());
  EXPECT_TRUE(IsDurable(root_.dir(), kTree));
}

TEST_F(DurableTest, WritesNoMarkIfItIsStopped) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(Make(stop.get_token())));
  EXPECT_FALSE(IsDurable(root_.dir(), kTree));
}

TEST_F(DurableTest, WritesNoMarkAfterAnErrorOfTheCaller) {
  before_open_ = absl::ResourceExhaustedError("no descriptor");
  EXPECT_EQ(Make(), before_open_);
  EXPECT_FALSE(IsDurable(root_.dir(), kTree));
}

TEST_F(DurableTest, ATreeWithoutRecordsGetsNoMark) {
  ASSERT_TRUE(RemoveGenerationRecords(root_.dir(), kTree).ok());
  EXPECT_TRUE(absl::IsNotFound(Make()));
  EXPECT_FALSE(IsDurable(root_.dir(), kTree));
}

TEST_F(DurableTest, TheMarkGoesWithTheRecordsOfALostTree) {
  ASSERT_TRUE(Make().ok());
  stdfs::remove_all(root_ / GenerationPath(kTree));
  ASSERT_TRUE(RepairJournal(root_.dir(), WallTime{}).ok());
  EXPECT_FALSE(IsDurable(root_.dir(), kTree));
}

}  // namespace
}  // namespace cachewarm::agent
