// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/links.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

const Mount kMount{"team", "llama", "uid-1", "u1000"};
const WallTime kNow{std::chrono::seconds(1'800'000'000)};
const std::string kWarm(32, 'a');

PrepareOptions Options() {
  return {.folders = {"inductor", "triton"}, .now = kNow};
}

// Returns the directory that a pod would mount; an error text if the path does not resolve.
std::string Resolve(const Root& root) {
  std::error_code error;
  const stdfs::path real = stdfs::canonical(root / MountPath(kMount), error);
  return error ? "dangling: " + error.message()
               : stdfs::relative(real, stdfs::canonical(root.path())).string();
}

void MakeTree(const Root& root, const std::string& id) {
  root.Write(GenerationPath(id) + "/inductor/f", id);
  stdfs::permissions(root / GenerationPath(id), stdfs::perms::all);
}

TEST(PrepareMount, LinksToColdTreeWritableByAnyUid) {
  const Root root;
  const mode_t before = ::umask(077);
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  ::umask(before);
  const std::string cold = ColdId(kMount, 0);
  EXPECT_EQ(Resolve(root), GenerationPath(cold));
  EXPECT_EQ(stdfs::read_symlink(root / MountPath(kMount)).string(), "../../../.gen/" + cold);
  EXPECT_EQ(root.Mode(GenerationPath(cold)), 0777U);
  EXPECT_EQ(root.Mode(GenerationPath(cold) + "/inductor"), 0777U);
  EXPECT_EQ(root.Mode(GenerationPath(cold) + "/triton"), 0777U);
  EXPECT_EQ(root.Mode("team/llama/uid-1"), 0755U);
}

TEST(PrepareMount, SetsOwnerOfTree) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs CAP_CHOWN";
  }
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  struct ::stat buffer {};
  ASSERT_EQ(::stat((root / (MountPath(kMount) + "/inductor")).c_str(), &buffer), 0);
  EXPECT_EQ(buffer.st_uid, 1000U);
}

TEST(PrepareMount, FoldersAboveTreesArePrivate) {
  const Root root;
  for (const std::string_view folder : {kGenerations, kStaging, kState}) {
    EXPECT_EQ(root.Mode(std::string(folder)), 0700U) << folder;
  }
}

TEST(PrepareMount, IsIdempotent) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  root.Write(MountPath(kMount) + "/inductor/kept", "x");
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_EQ(root.Read(MountPath(kMount) + "/inductor/kept"), "x");
  EXPECT_EQ(ReadActivations(root.dir(), kMount).size(), 1U);
}

TEST(PrepareMount, AdoptsDirectoryOfRunningPod) {
  const Root root;
  root.Write(MountPath(kMount) + "/inductor/early", "written before the agent came");
  ::chmod((root / MountPath(kMount)).c_str(), 0755);
  // An open directory represents the mount of a container.
  const int mounted = ::open((root / MountPath(kMount)).c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_GE(mounted, 0);
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());

  EXPECT_TRUE(stdfs::is_symlink(root / MountPath(kMount)));
  const int file = ::openat(mounted, "inductor/late", O_CREAT | O_WRONLY, 0644);
  ASSERT_GE(file, 0);
  ::close(file);
  ::close(mounted);
  EXPECT_TRUE(root.Exists(MountPath(kMount) + "/inductor/late"));
  EXPECT_EQ(root.Read(MountPath(kMount) + "/inductor/early"), "written before the agent came");
  EXPECT_EQ(root.Mode(MountPath(kMount)), 0777U);
  EXPECT_TRUE(IsColdId(stdfs::path(Resolve(root)).filename().string()));
}

TEST(PrepareMount, AdoptedTreeIsThatOfEarlierContainers) {
  const Root root;
  stdfs::create_directories(root / MountPath(kMount));
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  const auto candidates = GenerationsAt(ReadActivations(root.dir(), kMount),
                                        kNow - std::chrono::hours(1), Duration(30'000));
  EXPECT_EQ(candidates, std::vector<std::string>{ColdId(kMount, 0)});
}

TEST(PrepareMount, AdoptsIntoNextFreeColdTree) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  root.Write(MountPath(kMount) + "/first", "1");
  stdfs::remove(root / MountPath(kMount));
  root.Write(MountPath(kMount) + "/second", "2");
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_EQ(Resolve(root), GenerationPath(ColdId(kMount, 1)));
  EXPECT_EQ(root.Read(MountPath(kMount) + "/second"), "2");
  EXPECT_EQ(root.Read(GenerationPath(ColdId(kMount, 0)) + "/first"), "1");
}

TEST(PrepareMount, CompletesKilledAdoption) {
  const Root root;
  stdfs::create_directories(root / MountPath(kMount));
  stdfs::create_symlink(LinkTarget(ColdId(kMount, 0)), root / GenerationPath(ColdId(kMount, 0)));
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_EQ(Resolve(root), GenerationPath(ColdId(kMount, 0)));
}

TEST(PrepareMount, RepairsDanglingLinkWithNewestTree) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  MakeTree(root, kWarm);
  ASSERT_TRUE(ActivateGeneration(root.dir(), kMount, kWarm, Options()).ok());
  stdfs::remove_all(root / GenerationPath(kWarm));
  ASSERT_TRUE(Resolve(root).starts_with("dangling"));
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_EQ(Resolve(root), GenerationPath(ColdId(kMount, 0)));
}

TEST(PrepareMount, ReplacesDanglingLinkWithoutHistoryByColdTree) {
  const Root root;
  stdfs::create_directories(root / MountParent(kMount));
  stdfs::create_symlink(LinkTarget(kWarm), root / MountPath(kMount));
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_EQ(Resolve(root), GenerationPath(ColdId(kMount, 0)));
}

TEST(PrepareMount, ReplacesLinkOutOfRoot) {
  const Root root;
  stdfs::create_directories(root / MountParent(kMount));
  stdfs::create_symlink("/etc", root / MountPath(kMount));
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_EQ(Resolve(root), GenerationPath(ColdId(kMount, 0)));
}

TEST(PrepareMount, ReplacesFile) {
  const Root root;
  root.Write(MountPath(kMount), "what is this");
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_EQ(Resolve(root), GenerationPath(ColdId(kMount, 0)));
}

TEST(PrepareMount, RepairsModeOfActiveTree) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  ::chmod((root / MountPath(kMount)).c_str(), 0755);
  EXPECT_EQ((*ScanLink(root.dir(), kMount))->state, LinkState::kUnusable);
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_EQ((*ScanLink(root.dir(), kMount))->state, LinkState::kActive);
}

TEST(PrepareMount, FollowsNoLinkInTree) {
  const Root root;
  const Scratch outside;
  outside.Write("secret/file", "x");
  ::chmod((outside / "secret").c_str(), 0700);
  stdfs::create_directories(root / MountPath(kMount));
  stdfs::create_symlink(outside / "secret", root / (MountPath(kMount) + "/inductor"));
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_EQ(outside.Mode("secret"), 0700U);
}

TEST(PrepareMount, RejectsParentThatIsALink) {
  const Root root;
  const Scratch outside;
  stdfs::create_symlink(outside.path(), root / "team");
  EXPECT_FALSE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_TRUE(stdfs::is_empty(outside.path()));
}

TEST(ActivateGeneration, FlipsLinkAndKeepsOldTree) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  root.Write(MountPath(kMount) + "/inductor/cold", "by a pod");
  MakeTree(root, kWarm);
  ASSERT_TRUE(ActivateGeneration(root.dir(), kMount, kWarm, Options()).ok());
  EXPECT_EQ(Resolve(root), GenerationPath(kWarm));
  EXPECT_EQ(root.Read(GenerationPath(ColdId(kMount, 0)) + "/inductor/cold"), "by a pod");
}

TEST(ActivateGeneration, RunningPodKeepsItsTree) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  const int mounted = ::open((root / MountPath(kMount)).c_str(), O_RDONLY | O_DIRECTORY);
  MakeTree(root, kWarm);
  ASSERT_TRUE(ActivateGeneration(root.dir(), kMount, kWarm, Options()).ok());
  const int file = ::openat(mounted, "mine", O_CREAT | O_WRONLY, 0644);
  ASSERT_GE(file, 0);
  ::close(file);
  ::close(mounted);
  EXPECT_FALSE(root.Exists(MountPath(kMount) + "/mine"));
  EXPECT_TRUE(root.Exists(GenerationPath(ColdId(kMount, 0)) + "/mine"));
}

TEST(ActivateGeneration, RejectsMissingTree) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_EQ(ActivateGeneration(root.dir(), kMount, kWarm, Options()).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Resolve(root), GenerationPath(ColdId(kMount, 0)));
}

TEST(ActivateGeneration, AdoptsDirectory) {
  const Root root;
  root.Write(MountPath(kMount) + "/inductor/early", "x");
  MakeTree(root, kWarm);
  ASSERT_TRUE(ActivateGeneration(root.dir(), kMount, kWarm, Options()).ok());
  EXPECT_EQ(Resolve(root), GenerationPath(kWarm));
  EXPECT_EQ(root.Read(GenerationPath(ColdId(kMount, 0)) + "/inductor/early"), "x");
}

TEST(ActivateFreshTree, NeverReturnsToReplacedTree) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  root.Write(MountPath(kMount) + "/inductor/truncated.so", "crashes every start");
  PrepareOptions renewed = Options();
  renewed.renew = 1;
  ASSERT_TRUE(ActivateFreshTree(root.dir(), kMount, renewed).ok());
  EXPECT_FALSE(root.Exists(MountPath(kMount) + "/inductor/truncated.so"));
  EXPECT_TRUE(root.Exists(MountPath(kMount) + "/inductor"));
  EXPECT_EQ((*ScanLink(root.dir(), kMount))->renew, 1);
  EXPECT_TRUE(root.Exists(GenerationPath(ColdId(kMount, 0)) + "/inductor/truncated.so"));
  // A repair does not return to it either.
  stdfs::remove_all(stdfs::canonical(root / MountPath(kMount)));
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, Options()).ok());
  EXPECT_FALSE(root.Exists(MountPath(kMount) + "/inductor/truncated.so"));
  EXPECT_EQ((*ScanLink(root.dir(), kMount))->renew, 1);
}

TEST(CommitGeneration, RenamesStagingTree) {
  const Root root;
  root.Write(StagingPath(kWarm) + "/f", "x");
  ASSERT_TRUE(CommitGeneration(root.dir(), kWarm).ok());
  EXPECT_EQ(root.Read(GenerationPath(kWarm) + "/f"), "x");
  EXPECT_FALSE(root.Exists(StagingPath(kWarm)));
}

TEST(CommitGeneration, KeepsExistingTree) {
  const Root root;
  root.Write(GenerationPath(kWarm) + "/f", "first");
  root.Write(StagingPath(kWarm) + "/f", "second");
  ASSERT_TRUE(CommitGeneration(root.dir(), kWarm).ok());
  EXPECT_EQ(root.Read(GenerationPath(kWarm) + "/f"), "first");
  EXPECT_FALSE(root.Exists(StagingPath(kWarm)));
}

TEST(CommitGeneration, FailsWithoutAStagingTree) {
  const Root root;
  root.Write(GenerationPath("other") + "/f", "x");
  EXPECT_TRUE(absl::IsNotFound(CommitGeneration(root.dir(), kWarm)));
}

}  // namespace
}  // namespace cachewarm::agent
