// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/retire.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "agent/tree/durable.h"
#include "agent/tree/evict.h"
#include "agent/tree/journal.h"
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

// A machine with this CPU class, in its first or a later boot.
RootUser On(const std::string& cpu_class, const std::string& boot_id = "boot-1") {
  return {.node = "cpu\n" + cpu_class + "\n", .boot_id = boot_id};
}

// A container that mounted the directory of the mount: it keeps the tree that the link led to then.
class Container {
 public:
  explicit Container(const Root& root)
      : directory_(::open((root / MountPath(kMount)).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    EXPECT_GE(directory_, 0);
  }
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;
  ~Container() { ::close(directory_); }

  bool Reads(const char* file) const { return ::faccessat(directory_, file, R_OK, 0) == 0; }
  bool Writes(const char* file) const {
    const int opened = ::openat(directory_, file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    return opened >= 0 && ::close(opened) == 0;
  }
  unsigned ModeOf(const char* folder) const {
    struct stat found {};
    EXPECT_EQ(::fstatat(directory_, folder, &found, 0), 0);
    return found.st_mode & 07777U;
  }

 private:
  const int directory_;
};

// A root used by a node of kind "avx512": a warm tree is active, a cold one was active before.
class RetireTest : public ::testing::Test {
 protected:
  RetireTest() {
    EXPECT_EQ(*RetireForeignTrees(root_.dir(), On("avx512"), kOptions), 0);
    EXPECT_TRUE(PrepareMount(root_.dir(), kMount, kOptions).ok());
    root_.Write(MountPath(kMount) + "/inductor/own.so", "avx512 code of a pod");
    root_.Write(GenerationPath(kWarm) + "/inductor/x.so", "avx512 code of a bundle");
    EXPECT_TRUE(ActivateGeneration(root_.dir(), kMount, kWarm, kOptions).ok());
  }
  // As the agent does after the activation.
  void MakeWarmTreeDurable() const {
    ASSERT_TRUE(WriteGenerationRecord(root_.dir(), {.id = kWarm, .mount = kMount}, {}).ok());
    ASSERT_TRUE(MakeDurable({.root = root_.dir(), .generation = kWarm}, {}).ok());
  }
  Root root_;
};

TEST_F(RetireTest, SameNodeKeepsTrees) {
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), On("avx512"), kOptions), 0);
  EXPECT_EQ(MountedFiles(root_.path(), kMount).at("inductor/x.so"), "avx512 code of a bundle");
}

TEST_F(RetireTest, OtherKindOfNodeRetiresTrees) {
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), On("avx2"), kOptions), 2);
  EXPECT_TRUE(MountedFiles(root_.path(), kMount).empty());
  EXPECT_TRUE(stdfs::is_directory(root_ / (MountPath(kMount) + "/inductor")));
  const auto inventory = ScanInventory(root_.dir());
  EXPECT_EQ(inventory->generations.size(), 1U) << "no link can be flipped back to an old tree";
  EXPECT_EQ(inventory->links.at(kMount).state, LinkState::kActive);
}

TEST_F(RetireTest, RunningContainersKeepTheirTreesOnTheSameBoot) {
  const Container container(root_);
  ASSERT_TRUE(RetireForeignTrees(root_.dir(), On("avx2"), kOptions).ok());
  EXPECT_TRUE(container.Reads("inductor/x.so"));
  EXPECT_TRUE(container.Writes("inductor/new"));
  EXPECT_FALSE(MountedFiles(root_.path(), kMount).contains("inductor/new"));
}

TEST_F(RetireTest, ContainersThatStartedBeforeTheAgentFindNoForeignCodeAfterAReboot) {
  const Container container(root_);
  EXPECT_TRUE(IsNewBoot(root_.dir(), "boot-2"));
  ASSERT_EQ(*RetireForeignTrees(root_.dir(), On("avx2", "boot-2"), kOptions), 2);
  EXPECT_FALSE(container.Reads("inductor/x.so"));
  EXPECT_TRUE(container.Reads("inductor")) << "they compile into the directory that they mounted";
  EXPECT_EQ(container.ModeOf("inductor"), 0777U);
  EXPECT_TRUE(container.Writes("inductor/new"));
  EXPECT_TRUE(MountedFiles(root_.path(), kMount).empty());
  EXPECT_FALSE(stdfs::is_empty(root_ / std::string(kTrash))) << "and the disk gets its space back";
  EXPECT_FALSE(IsNewBoot(root_.dir(), "boot-2"));
}

TEST_F(RetireTest, RebootOnTheSameHardwareKeepsDurableTrees) {
  MakeWarmTreeDurable();
  const Container container(root_);
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), On("avx512", "boot-2"), kOptions), 0);
  EXPECT_TRUE(container.Reads("inductor/x.so"));
  EXPECT_FALSE(IsNewBoot(root_.dir(), "boot-2")) << "the boot is recorded";
}

TEST_F(RetireTest, ContainersFindNoTreeThatWasNotOnTheDiskBeforeAReboot) {
  const Container container(root_);
  ASSERT_EQ(*RetireForeignTrees(root_.dir(), On("avx512", "boot-2"), kOptions), 1);
  EXPECT_FALSE(container.Reads("inductor/x.so"));
  EXPECT_TRUE(container.Writes("inductor/new")) << "they compile into what they mounted";
  EXPECT_TRUE(MountedFiles(root_.path(), kMount).empty());
  EXPECT_FALSE(root_.Exists(GenerationPath(kWarm))) << "no link can be flipped back to it";
  EXPECT_FALSE(IsNewBoot(root_.dir(), "boot-2"));
}

TEST_F(RetireTest, RestartOfTheAgentAloneKeepsTreesThatAreNotOnTheDisk) {
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), On("avx512"), kOptions), 0);
  EXPECT_FALSE(IsDurable(root_.dir(), kWarm));
  EXPECT_TRUE(MountedFiles(root_.path(), kMount).contains("inductor/x.so"));
}

TEST_F(RetireTest, UnlinkedTreeThatWasNotOnTheDiskIsRetiredToo) {
  ASSERT_TRUE(ActivateFreshTree(root_.dir(), kMount, kOptions).ok());
  root_.Write(MountPath(kMount) + "/inductor/own.so", "code of a pod");
  ASSERT_EQ(*RetireForeignTrees(root_.dir(), On("avx512", "boot-2"), kOptions), 1);
  EXPECT_FALSE(root_.Exists(GenerationPath(kWarm)));
  EXPECT_TRUE(MountedFiles(root_.path(), kMount).contains("inductor/own.so"))
      << "trees without a bundle have no mark";
}

TEST_F(RetireTest, ALaterTreeOfTheSameNameIsNotTakenForTheDurableOne) {
  MakeWarmTreeDurable();
  ASSERT_TRUE(RetireForeignTrees(root_.dir(), On("avx2"), kOptions).ok());
  EXPECT_FALSE(IsDurable(root_.dir(), kWarm));
}

TEST_F(RetireTest, EvictionRemovesTheDurableMark) {
  MakeWarmTreeDurable();
  ASSERT_TRUE(ActivateFreshTree(root_.dir(), kMount, kOptions).ok());
  ASSERT_TRUE(Evict(root_.dir(), {.name = kWarm, .warmup_uid = kMount.uid}).ok());
  EXPECT_FALSE(IsDurable(root_.dir(), kWarm));
}

TEST_F(RetireTest, DirectoryThatKubeletMadeIsEmptiedAfterARebootToo) {
  const Mount late{"team", "late", "uid-2", "image"};
  root_.Write(MountPath(late) + "/inductor/x.so", "avx512 code of a pod");
  ASSERT_TRUE(RetireForeignTrees(root_.dir(), On("avx2", "boot-2"), kOptions).ok());
  EXPECT_FALSE(root_.Exists(MountPath(late) + "/inductor/x.so"));
  EXPECT_TRUE(stdfs::is_directory(root_ / (MountPath(late) + "/inductor")));
}

TEST_F(RetireTest, UnknownGpuTypeLeavesTheCheckOfTheBootToALaterCall) {
  MakeWarmTreeDurable();
  RootUser user = On("avx512", "boot-2");
  user.is_gpu_known = false;
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), user, kOptions), 0);
  const Container container(root_);
  user = {.node = "nvidia/l4/sm_89\navx512\n", .boot_id = "boot-2"};
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), user, kOptions), 2);
  EXPECT_FALSE(container.Reads("inductor/x.so")) << "the driver answered late";
}

TEST_F(RetireTest, OtherCpuClassIsRetiredBeforeTheGpuTypeIsKnown) {
  const Container container(root_);
  RootUser user = On("avx2", "boot-2");
  user.is_gpu_known = false;
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), user, kOptions), 2);
  EXPECT_FALSE(container.Reads("inductor/x.so"));
}

TEST_F(RetireTest, RecordOfAnOlderAgentCountsAsTheSameBoot) {
  root_.Write(".state/node", "cpu\navx512\n");
  const Container container(root_);
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), On("avx2", "boot-2"), kOptions), 2);
  EXPECT_TRUE(container.Reads("inductor/x.so"));
  EXPECT_TRUE(IsNewBoot(root_.dir(), "boot-3"));
  EXPECT_FALSE(IsNewBoot(root_.dir(), "")) << "unknown";
}

TEST_F(RetireTest, IsDoneOnce) {
  ASSERT_EQ(*RetireForeignTrees(root_.dir(), On("avx2"), kOptions), 2);
  root_.Write(MountPath(kMount) + "/inductor/own.so", "avx2 code");
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), On("avx2"), kOptions), 0);
  EXPECT_EQ(MountedFiles(root_.path(), kMount).at("inductor/own.so"), "avx2 code");
}

TEST_F(RetireTest, ReturningNodeGetsEmptyTrees) {
  ASSERT_TRUE(RetireForeignTrees(root_.dir(), On("avx2"), kOptions).ok());
  root_.Write(MountPath(kMount) + "/inductor/own.so", "avx2 code");
  ASSERT_TRUE(RetireForeignTrees(root_.dir(), On("avx512"), kOptions).ok());
  EXPECT_TRUE(MountedFiles(root_.path(), kMount).empty());
}

TEST_F(RetireTest, LostRecordRetiresTrees) {
  stdfs::remove(root_ / ".state/node");
  EXPECT_EQ(*RetireForeignTrees(root_.dir(), On("avx512"), kOptions), 2);
  EXPECT_TRUE(MountedFiles(root_.path(), kMount).empty());
}

TEST_F(RetireTest, UnknownGpuTypeCountsAsTheRecordedOne) {
  ASSERT_TRUE(
      RetireForeignTrees(root_.dir(), {.node = "nvidia/h200/sm_90\navx512\n"}, kOptions).ok());
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
  EXPECT_EQ(*RetireForeignTrees(root.dir(), On("avx512"), kOptions), 0);
  EXPECT_EQ(root.Read(MountPath(kMount) + "/inductor/early"), "a pod's");
}

}  // namespace
}  // namespace cachewarm::agent
