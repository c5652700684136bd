// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/root.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

namespace stdfs = std::filesystem;

const Mount kMount{"team", "llama", "uid-1", "image"};
const std::string kWarm(32, 'a');

TEST(OpenRoot, CreatesMissingFolders) {
  const Scratch scratch;
  const std::string path = (scratch / "a/b").string();
  ASSERT_TRUE(OpenRoot(path).ok());
  scratch.Write("a/b/.gen/" + kWarm + "/f", "x");
  ASSERT_TRUE(OpenRoot(path).ok());
  EXPECT_EQ(scratch.Read("a/b/.gen/" + kWarm + "/f"), "x");
}

TEST(OpenRoot, RejectsFolderThatIsALink) {
  const Scratch scratch;
  const Scratch outside;
  stdfs::create_directory(scratch / "root");
  stdfs::create_symlink(outside.path(), scratch / "root/.gen");
  EXPECT_FALSE(OpenRoot((scratch / "root").string()).ok());
}

TEST(OpenRoot, ReportsFileAtItsPath) {
  const Scratch scratch;
  scratch.Write("root", "x");
  const absl::Status status = OpenRoot((scratch / "root").string()).status();
  EXPECT_NE(std::string(status.message()).find("root directory"), std::string::npos) << status;
}

TEST(RepairRoot, RestoresFoldersAndModes) {
  const Root root;
  stdfs::remove_all(root / ".gen");
  stdfs::remove_all(root / ".state/links");
  stdfs::permissions(root / ".staging", stdfs::perms::all);
  ASSERT_TRUE(RepairRoot(root.dir()).ok());
  for (const std::string_view folder : {kGenerations, kLinkRecords, kStaging}) {
    EXPECT_EQ(root.Mode(std::string(folder)), 0700U) << folder;
  }
}

TEST(RepairRoot, WritesNothingToIntactRoot) {
  const Root root;
  const auto before = root.dir().Stat(kGenerations);
  ASSERT_TRUE(RepairRoot(root.dir()).ok());
  EXPECT_EQ(root.dir().Stat(kGenerations)->ctime_ns, before->ctime_ns);
}

TEST(RepairRoot, ReturnsNotFoundForRemovedRoot) {
  const Root root;
  stdfs::remove_all(root.path());
  EXPECT_TRUE(absl::IsNotFound(RepairRoot(root.dir())));
}

TEST(CheckRoot, ReportsUsableRoot) {
  const Root root;
  const api::RootStatus status = CheckRoot(root.dir(), fs::MeasureSpace(root.dir()));
  EXPECT_TRUE(status.writable);
  EXPECT_TRUE(status.executable) << status.message;
  EXPECT_GT(status.free_bytes, 0);
  EXPECT_EQ(status.path, root.path());
  EXPECT_EQ(status.message, "");
}

TEST(SweepLeftovers, RemovesOnlyUnfinishedWork) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, {}).ok());
  root.Write(StagingPath(kWarm) + "/deep/er/f", "x");
  root.Write(".state/.tmp-1-0", "x");
  root.Write(".state/generations/.tmp-1-0", "x");
  root.Write(".state/links/.tmp-1-0", "x");
  root.Write(".state/captures/.tmp-1-0", "x");
  stdfs::create_symlink("x", root / ".gen/.tmp-1-0");
  stdfs::create_symlink("x", root / (".gen/" + ColdId(kMount, 5)));
  stdfs::create_symlink("x", root / (MountParent(kMount) + "/.tmp-1-1"));
  root.Write(MountPath(kMount) + "/inductor/.tmp-a-pod's", "keep");
  root.Write(".store/.tmp-upload", "keep");
  ASSERT_TRUE(SweepLeftovers(root.dir()).ok());

  EXPECT_TRUE(stdfs::is_empty(root / ".staging"));
  for (const char* gone : {".state/.tmp-1-0", ".state/generations/.tmp-1-0",
                           ".state/links/.tmp-1-0", ".state/captures/.tmp-1-0", ".gen/.tmp-1-0"}) {
    EXPECT_FALSE(root.Exists(gone)) << gone;
  }
  EXPECT_FALSE(root.Exists(".gen/" + ColdId(kMount, 5)));
  EXPECT_FALSE(root.Exists(MountParent(kMount) + "/.tmp-1-1"));
  EXPECT_EQ(root.Read(MountPath(kMount) + "/inductor/.tmp-a-pod's"), "keep");
  EXPECT_EQ(root.Read(".store/.tmp-upload"), "keep");
  EXPECT_EQ(ReadActivations(root.dir(), kMount).size(), 1U);
}

TEST(ScanInventory, FindsLinksTreesAndStaging) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, {}).ok());
  ASSERT_TRUE(WriteGenerationRecord(root.dir(),
                                    {.id = kWarm,
                                     .mount = kMount,
                                     .digests = {DigestOf("1")},
                                     .bytes = 9,
                                     .fetch_seconds = 2},
                                    {})
                  .ok());
  stdfs::create_directories(root / GenerationPath(kWarm));
  stdfs::create_directories(root / "team/llama/uid-1/u7");
  stdfs::create_directories(root / StagingPath("x"));
  stdfs::create_symlink("nowhere", root / "team/llama/uid-1/u8");
  root.Write("team/llama/uid-1/notes.txt", "foreign");
  root.Write("lost+found/x", "foreign");

  const absl::StatusOr<Inventory> inventory = ScanInventory(root.dir());
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  ASSERT_EQ(inventory->links.size(), 3U);
  EXPECT_EQ(inventory->links.at(kMount), (Link{LinkState::kActive, ColdId(kMount, 0)}));
  EXPECT_EQ(inventory->links.at({"team", "llama", "uid-1", "u7"}),
            (Link{LinkState::kDirectory, ""}));
  EXPECT_EQ(inventory->links.at({"team", "llama", "uid-1", "u8"}), (Link{LinkState::kBroken, ""}));
  EXPECT_EQ(inventory->generations.at(kWarm), (Generation{.digests = {DigestOf("1")},
                                                          .bytes = 9,
                                                          .fetch_seconds = 2,
                                                          .usage = {.bytes = 9},
                                                          .warmup_uid = kMount.uid,
                                                          .run_as = kMount.run_as}));
  EXPECT_EQ(inventory->generations.size(), 2U);
  EXPECT_EQ(inventory->staging, std::set<std::string>{"x"});
}

TEST(ScanInventory, IncludesTreeWithoutRecord) {
  const Root root;
  stdfs::create_directories(root / GenerationPath(kWarm));
  EXPECT_EQ(ScanInventory(root.dir())->generations.at(kWarm), Generation{});
}

}  // namespace
}  // namespace cachewarm::agent
