// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/capturing/truncated_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "agent/tree/root_layout.h"
#include "lib/fs/fd.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

constexpr char kGeneration[] = "cold-0123456789abcdef";

class TruncatedFilesTest : public ::testing::Test, protected Workbench {
 protected:
  static std::string Path(const std::string& file) {
    return GenerationPath(kGeneration) + "/" + file;
  }

  // Writes a file and its event.
  void Wrote(const std::string& file, const std::string& bytes) {
    root_.Write(Path(file), bytes);
    events_.push_back({.type = FileEventType::kWritten, .time = clock_.Now(), .path = file});
    watcher_.SetEvents(kGeneration, events_);
  }

  void SweepAfter(seconds pause) {
    clock_.Advance(pause);
    truncated_files_.Sweep(trees_);
  }

  const std::string whole_ = SharedObject(std::string(4096, 'c'));
  const std::string truncated_ = whole_.substr(0, 2048);
  std::vector<FileEvent> events_;
  std::vector<std::string> trees_ = {kGeneration};
  bundle::WorkerPool workers_{1, 1};
  const Context context_ = ContextWith(workers_);
  TruncatedFiles truncated_files_{context_};
};

TEST_F(TruncatedFilesTest, RemovesTruncatedFile) {
  Wrote(kObjectFile, truncated_);
  SweepAfter(seconds(2));
  EXPECT_FALSE(root_.Exists(Path(kObjectFile)));
  EXPECT_EQ(watcher_.own_reads(), std::vector<std::string>{kObjectFile});
}

TEST_F(TruncatedFilesTest, RemovesEmptyFile) {
  Wrote(kObjectFile, "");
  SweepAfter(seconds(2));
  EXPECT_FALSE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TruncatedFilesTest, KeepsWholeFile) {
  Wrote(kObjectFile, whole_);
  SweepAfter(seconds(2));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TruncatedFilesTest, KeepsFilesWithoutNativeCode) {
  Wrote(kIndexFile, truncated_);
  Wrote(kSourceFile, "");
  Wrote("unknown/file.so", truncated_);
  SweepAfter(seconds(2));
  EXPECT_TRUE(root_.Exists(Path(kIndexFile)));
  EXPECT_TRUE(root_.Exists(Path(kSourceFile)));
  EXPECT_TRUE(root_.Exists(Path("unknown/file.so")));
}

TEST_F(TruncatedFilesTest, WaitsUntilFileIsQuiet) {
  Wrote(kObjectFile, truncated_);
  SweepAfter(std::chrono::seconds(0));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
  clock_.Advance(std::chrono::milliseconds(900));
  Wrote(kObjectFile, truncated_);
  truncated_files_.Sweep(trees_);
  SweepAfter(seconds(0));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
  SweepAfter(seconds(1));
  EXPECT_FALSE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TruncatedFilesTest, WaitsWhileFileIsOpenForWriting) {
  Wrote(kObjectFile, truncated_);
  {
    const fs::Fd writer(::open((root_ / Path(kObjectFile)).c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_TRUE(writer.ok());
    SweepAfter(seconds(5));
    EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
  }
  SweepAfter(seconds(1));
  EXPECT_FALSE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TruncatedFilesTest, KeepsFileThatReplacedIt) {
  Wrote(kObjectFile, truncated_);
  truncated_files_.Sweep(trees_);
  root_.Write(Path(kObjectFile), whole_);
  SweepAfter(seconds(2));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TruncatedFilesTest, ChecksOnlyGivenTrees) {
  Wrote(kObjectFile, truncated_);
  trees_.clear();
  SweepAfter(seconds(2));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
}

TEST_F(TruncatedFilesTest, FollowsNoLinks) {
  const Scratch elsewhere;
  elsewhere.Write("victim.so", truncated_);
  std::filesystem::create_directories((root_ / Path(kObjectFile)).parent_path());
  std::filesystem::create_symlink(elsewhere / "victim.so", root_ / Path(kObjectFile));
  watcher_.SetEvents(
      kGeneration, {{.type = FileEventType::kWritten, .time = clock_.Now(), .path = kObjectFile}});
  SweepAfter(seconds(2));
  EXPECT_TRUE(elsewhere.Exists("victim.so"));
  EXPECT_TRUE(root_.Exists(Path(kObjectFile)));
}

}  // namespace
}  // namespace cachewarm::agent
