// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/retire.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

const Mount kMount{"team", "llama", "uid-1", "image"};
const std::string kWarm(32, 'a');
const PrepareOptions kOptions{.folders = {"inductor"},
                              .now = WallTime(std::chrono::seconds(1'800'000'000))};

std::map<std::string, std::string> Shown(const Root& root) {
  return FilesBelow(stdfs::canonical(root / MountPath(kMount)));
}

// A root used by a node of kind "avx512": a warm tree is active, a cold one was active before.
class RetireTest : public ::testing::Test {
 protected:
  RetireTest() {
    EXPECT_EQ(*RetireForeignTrees(root_.dir(), "avx512", kOptions), 0);
    EXPECT_TRUE(PrepareMount(root_.dir(), kMount, kOptions).ok());
    root_.Write(MountPath(kMount) + "/inductor/own.so", "avx512 code of a pod");
    root_.Write(GenerationPath(kWarm) + "/inductor/x.so", "avx512 code of a bundle");
    EXPECT_TRUE(ActivateGeneration(root_.dir(), kMount, kWarm, kOptions).ok());
  }
  Root root_;
};

TEST_F(RetireTest, SameNodeKeepsTrees) {
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), "avx512", kOptions), 0);
  EXPECT_EQ(Shown(root_).at("inductor/x.so"), "avx512 code of a bundle");
}

TEST_F(RetireTest, OtherKindOfNodeRetiresTrees) {
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), "avx2", kOptions), 2);
  EXPECT_TRUE(Shown(root_).empty());
  EXPECT_TRUE(stdfs::is_directory(root_ / (MountPath(kMount) + "/inductor")));
  const auto inventory = ScanInventory(root_.dir());
  EXPECT_EQ(inventory->generations.size(), 1U) << "no link can be flipped back to an old tree";
  EXPECT_EQ(inventory->links.at(kMount).state, LinkState::kActive);
}

TEST_F(RetireTest, RunningContainersKeepTheirTrees) {
  const int mounted = ::open((root_ / MountPath(kMount)).c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_GE(mounted, 0);
  ASSERT_TRUE(RetireForeignTrees(root_.dir(), "avx2", kOptions).ok());
  EXPECT_EQ(::faccessat(mounted, "inductor/x.so", R_OK, 0), 0);
  const int file = ::openat(mounted, "inductor/new", O_CREAT | O_WRONLY, 0644);
  EXPECT_GE(file, 0);
  ::close(file);
  ::close(mounted);
  EXPECT_FALSE(Shown(root_).contains("inductor/new"));
}

TEST_F(RetireTest, IsDoneOnce) {
  ASSERT_EQ(*RetireForeignTrees(root_.dir(), "avx2", kOptions), 2);
  root_.Write(MountPath(kMount) + "/inductor/own.so", "avx2 code");
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), "avx2", kOptions), 0);
  EXPECT_EQ(Shown(root_).at("inductor/own.so"), "avx2 code");
}

TEST_F(RetireTest, ReturningNodeGetsEmptyTrees) {
  ASSERT_TRUE(RetireForeignTrees(root_.dir(), "avx2", kOptions).ok());
  root_.Write(MountPath(kMount) + "/inductor/own.so", "avx2 code");
  ASSERT_TRUE(RetireForeignTrees(root_.dir(), "avx512", kOptions).ok());
  EXPECT_TRUE(Shown(root_).empty());
}

TEST_F(RetireTest, LostRecordRetiresTrees) {
  stdfs::remove(root_ / ".state/node");
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), "avx512", kOptions), 2);
  EXPECT_TRUE(Shown(root_).empty());
}

TEST_F(RetireTest, UnknownGpuTypeCountsAsTheRecordedOne) {
  ASSERT_TRUE(RetireForeignTrees(root_.dir(), "nvidia/h200/sm_90\navx512\n", kOptions).ok());
  EXPECT_EQ(NodeRecord(root_.dir(), "", "avx512"), "nvidia/h200/sm_90\navx512\n");
  EXPECT_EQ(NodeRecord(root_.dir(), "", "avx2"), "nvidia/h200/sm_90\navx2\n");
  EXPECT_EQ(NodeRecord(root_.dir(), "nvidia/l4/sm_89", "avx2"), "nvidia/l4/sm_89\navx2\n");
}

TEST(NodeRecord, IsEmptyWhileNothingIsKnown) {
  const Root root;
  EXPECT_EQ(NodeRecord(root.dir(), "", "avx2"), "");
  EXPECT_EQ(NodeRecord(root.dir(), "cpu", "avx2"), "cpu\navx2\n");
}

TEST(RetireForeignTrees, KeepsKubeletDirectoryOnNewNode) {
  const Root root;
  root.Write(MountPath(kMount) + "/inductor/early", "a pod's");
  EXPECT_EQ(*RetireForeignTrees(root.dir(), "avx512", kOptions), 0);
  EXPECT_EQ(root.Read(MountPath(kMount) + "/inductor/early"), "a pod's");
}

}  // namespace
}  // namespace cachewarm::agent
