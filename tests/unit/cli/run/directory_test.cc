// SPDX-License-Identifier: Apache-2.0
#include "cli/run/directory.h"

#include <sys/stat.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/fs/file.h"
#include "tests/unit/cli/run/machines.h"

namespace cachewarm::cli {
namespace {

using ::testing::HasSubstr;

class DirectoryTest : public ::testing::Test {
 protected:
  absl::StatusOr<ReadyDirectory> Open(const Machine& machine) {
    return OpenCacheDirectory(temp_ / "cache", machine, {.clock = SystemClock()});
  }
  std::string Sibling(const Machine& machine) { return SiblingOf(temp_ / "cache", machine); }

  TempDir temp_;
  const Machine one_ = MachineOf("x86-64-v4/amd-25-17/5c0d9f21");
  const Machine other_ = MachineOf("x86-64-v3/intel-6-85/0123abcd");
};

TEST_F(DirectoryTest, FirstMachineMarksItAndFindsItAgain) {
  for (int start = 0; start < 2; ++start) {
    const auto opened = Open(one_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->path, temp_ / "cache");
    EXPECT_EQ(opened->note, "");
    const auto marker = fs::ReadFile(opened->dir, ".cachewarm/machine.json", 4096);
    ASSERT_TRUE(marker.ok()) << marker.status();
    EXPECT_EQ(*ParseMarker(*marker), KindOf(one_));
    temp_.Write("cache/inductor/ab/cab.py", "print()\n");
  }
}

TEST_F(DirectoryTest, OtherCpuClassUsesSiblingAndLeavesItUnchanged) {
  ASSERT_TRUE(Open(one_).ok());
  temp_.Write("cache/inductor/ab/cab.py", "print()\n");
  for (int start = 0; start < 2; ++start) {
    const auto opened = Open(other_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->path, Sibling(other_));
    EXPECT_THAT(opened->note, HasSubstr("x86-64-v4/amd-25-17/5c0d9f21"));
    EXPECT_THAT(opened->note, HasSubstr("using " + Sibling(other_)));
    EXPECT_TRUE(TakeSnapshot(opened->dir).empty());
  }
  EXPECT_EQ(TakeSnapshot(Open(one_)->dir).size(), 1U);
}

TEST_F(DirectoryTest, OtherGpuTypeUsesSibling) {
  ASSERT_TRUE(Open(one_).ok());
  Machine gpu = one_;
  gpu.facts.gpu_type = "nvidia/h100-80gb-hbm3/sm_90";
  EXPECT_EQ(Open(gpu)->path, Sibling(gpu));
}

TEST_F(DirectoryTest, OtherEngineVersionOnTheSameMachineKeepsIt) {
  ASSERT_TRUE(Open(one_).ok());
  Machine upgraded = one_;
  upgraded.key = std::string(64, 'e');
  EXPECT_EQ(Open(upgraded)->path, temp_ / "cache");
}

TEST_F(DirectoryTest, FilesOfAnUnknownMachineAreNotUsed) {
  temp_.Write("cache/notes.txt", "no cache file");
  EXPECT_EQ(Open(one_)->path, temp_ / "cache");
  temp_.Write("unmarked/inductor/ab/cab.py", "print()\n");
  const auto opened = OpenCacheDirectory(temp_ / "unmarked", one_, {.clock = SystemClock()});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->path, SiblingOf(temp_ / "unmarked", one_));
  EXPECT_THAT(opened->note, HasSubstr("no marker"));
}

TEST_F(DirectoryTest, FilesWithoutMarkerCanBeAdopted) {
  temp_.Write("cache/inductor/ab/cab.py", "print()\n");
  const auto opened =
      OpenCacheDirectory(temp_ / "cache", one_, {.clock = SystemClock(), .adopt = true});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->path, temp_ / "cache");
  EXPECT_EQ(Open(one_)->path, temp_ / "cache") << "it has the marker now";
  const auto foreign = OpenCacheDirectory(
      temp_ / "cache", other_, {.clock = SystemClock(), .adopt = true, .sibling = false});
  EXPECT_TRUE(absl::IsFailedPrecondition(foreign.status())) << foreign.status();
}

TEST_F(DirectoryTest, DamagedMarkerIsNotReplaced) {
  for (const std::string text : {"", "{", "[]", "{\"version\":2,\"gpuType\":\"cpu\"}",
                                 "{\"version\":1,\"gpuType\":\"cpu\"}"}) {
    temp_.Write("cache/.cachewarm/machine.json", text);
    const auto opened = Open(one_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->path, Sibling(one_)) << text;
    EXPECT_THAT(opened->note, HasSubstr("damaged")) << text;
    EXPECT_EQ(*fs::ReadFile(temp_.Open(), "cache/.cachewarm/machine.json", 4096), text);
  }
}

TEST_F(DirectoryTest, SecondForeignDirectoryIsAnError) {
  ASSERT_TRUE(Open(one_).ok());
  ASSERT_TRUE(OpenCacheDirectory(Sibling(other_), one_, {.clock = SystemClock()}).ok());
  const auto opened = Open(other_);
  EXPECT_TRUE(absl::IsFailedPrecondition(opened.status())) << opened.status();
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("choose another --dir"));
}

}  // namespace
}  // namespace cachewarm::cli
