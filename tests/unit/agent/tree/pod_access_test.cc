// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/pod_access.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "lib/fs/file.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

const Mount kMountOfUser{"team", "llama", "uid-1", "u1000"};
const Mount kMountOfImage{"team", "llama", "uid-1", "image"};

TEST(PodAccess, EveryUserMayWriteAnOpenedDirectory) {
  const Root root;
  std::filesystem::create_directory(root / "tree");
  ASSERT_EQ(::chmod((root / "tree").c_str(), 0700), 0);
  ASSERT_TRUE(OpenToPods(root.dir(), "tree", kMountOfUser).ok());
  EXPECT_EQ(root.Mode("tree"), 0777U);
}

TEST(PodAccess, FoldersAreWritableAndExistingFilesAreKept) {
  const Root root;
  root.Write("tree/triton", "a file that a pod made under the name of a folder");
  const mode_t before = ::umask(077);
  const absl::Status made = MakeFolders(root.dir(), kMountOfUser, "tree", {"inductor", "triton"});
  ::umask(before);
  ASSERT_TRUE(made.ok()) << made;
  EXPECT_EQ(root.Mode("tree/inductor"), 0777U);
  EXPECT_TRUE(std::filesystem::is_regular_file(root / "tree/triton"));
}

TEST(PodAccess, UserOfTheMountOwnsDirectoriesAndFiles) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs CAP_CHOWN";
  }
  const Root root;
  root.Write("tree/file", "x");
  ASSERT_TRUE(OpenToPods(root.dir(), "tree", kMountOfUser).ok());
  const fs::Fd file(::open((root / "tree/file").c_str(), O_RDWR | O_CLOEXEC));
  const absl::StatusOr<fs::FileStat> stat = SetPodOwner(file, kMountOfUser);
  ASSERT_TRUE(stat.ok()) << stat.status();
  EXPECT_EQ(stat->uid, 1000U);
  EXPECT_EQ(root.dir().Stat("tree")->uid, 1000U);
}

TEST(PodAccess, OwnerIsUnchangedIfTheImageChoosesTheUser) {
  const Root root;
  root.Write("file", "x");
  const fs::Fd file(::open((root / "file").c_str(), O_RDWR | O_CLOEXEC));
  const absl::StatusOr<fs::FileStat> stat = SetPodOwner(file, kMountOfImage);
  ASSERT_TRUE(stat.ok()) << stat.status();
  EXPECT_EQ(stat->uid, ::geteuid());
  EXPECT_TRUE(HasPodOwner(*stat, kMountOfImage));
}

TEST(PodAccess, FileOfAnotherUserDoesNotHaveThePodOwner) {
  fs::FileStat stat;
  stat.uid = 1000;
  EXPECT_TRUE(HasPodOwner(stat, kMountOfUser));
  stat.uid = 0;
  EXPECT_FALSE(HasPodOwner(stat, kMountOfUser));
  EXPECT_TRUE(HasPodOwner(stat, kMountOfImage)) << "any owner is right";
}

}  // namespace
}  // namespace cachewarm::agent
