// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/capturing/torn_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "agent/steps/workers.h"
#include "agent/tree/layout.h"
#include "lib/fs/fd.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

constexpr char kGeneration[] = "cold-0123456789abcdef";

class TornFilesTest : public ::testing::Test, protected Workbench {
 protected:
  static std::string Path(const std::string& file) {
    return GenerationPath(kGeneration) + "/" + file;
  }

  // Writes a file and has the watcher say so.
  void Wrote(const std::string& file, const std::string& bytes) {
    root_.Write(Path(file), bytes);
    events_.push_back({.type = FileEventType::kWritten, .time = clock_.Now(), .path = file});
    watcher_.Saw(kGeneration, events_);
  }

  void SweepAfter(seconds pause) {
    clock_.Advance(pause);
    torn_files_.Sweep(trees_);
  }

  const std::string whole_ = SharedObject(std::string(4096, 'c'));
  const std::string torn_ = whole_.substr(0, 2048);
  std::vector<FileEvent> events_;
  std::vector<std::string> trees_ = {kGeneration};
  Workers workers_{1, 1};
  const Context context_ = ContextWith(workers_);
  TornFiles torn_files_{context_};
};

TEST_F(TornFilesTest, TakesAwayWhatAKilledLinkerLeft) {
  Wrote(kObjectFile, torn_);
  SweepAfter(seconds(2));
  EXPECT_FALSE(root_.Exists(Path(kObjectFile)));
  EXPECT_EQ(watcher_.own_reads(), std::vector<std::string>{kObjectFile});
}

TEST_F(TornFilesTest, TakesAwayAnEmptyOne) {
  Wrote(kObjectFile, "");
  SweepAfter(seconds(2));
  EXPECT_FALSE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TornFilesTest, LeavesWhatIsWhole) {
  Wrote(kObjectFile, whole_);
  SweepAfter(seconds(2));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TornFilesTest, LeavesWhatIsNoNativeCode) {
  Wrote(kIndexFile, torn_);
  Wrote(kSourceFile, "");
  Wrote("nobody/knows.so", torn_);
  SweepAfter(seconds(2));
  EXPECT_TRUE(root_.Exists(Path(kIndexFile)));
  EXPECT_TRUE(root_.Exists(Path(kSourceFile)));
  EXPECT_TRUE(root_.Exists(Path("nobody/knows.so")));
}

TEST_F(TornFilesTest, WaitsUntilTheFileHasBeenQuietForASecond) {
  Wrote(kObjectFile, torn_);
  SweepAfter(std::chrono::seconds(0));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
  clock_.Advance(std::chrono::milliseconds(900));
  Wrote(kObjectFile, torn_);
  torn_files_.Sweep(trees_);
  SweepAfter(seconds(0));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
  SweepAfter(seconds(1));
  EXPECT_FALSE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TornFilesTest, WaitsForWhoeverStillWritesIt) {
  Wrote(kObjectFile, torn_);
  {
    const fs::Fd writer(::open((root_ / Path(kObjectFile)).c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_TRUE(writer.ok());
    SweepAfter(seconds(5));
    EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
  }
  SweepAfter(seconds(1));
  EXPECT_FALSE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TornFilesTest, LeavesTheFileThatTookItsPlaceInTheMeantime) {
  Wrote(kObjectFile, torn_);
  torn_files_.Sweep(trees_);
  root_.Write(Path(kObjectFile), whole_);
  SweepAfter(seconds(2));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TornFilesTest, LooksOnlyIntoTheTreesItIsGiven) {
  Wrote(kObjectFile, torn_);
  trees_.clear();
  SweepAfter(seconds(2));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TornFilesTest, FollowsNoLinkOfAPod) {
  const Scratch elsewhere;
  elsewhere.Write("victim.so", torn_);
  std::filesystem::create_directories((root_ / Path(kObjectFile)).parent_path());
  std::filesystem::create_symlink(elsewhere / "victim.so", root_ / Path(kObjectFile));
  watcher_.Saw(kGeneration,
               {{.type = FileEventType::kWritten, .time = clock_.Now(), .path = kObjectFile}});
  SweepAfter(seconds(2));
  EXPECT_TRUE(elsewhere.Exists("victim.so"));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
}

}  // namespace
}  // namespace cachewarm::agent
