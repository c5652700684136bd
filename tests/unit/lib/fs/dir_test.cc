// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <stop_token>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "lib/fs/file.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::fs {
namespace {

// A directory with a link that leaves it, and a secret file beside it.
class DirTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(temp_ / "secret") << "secret";
    ASSERT_TRUE(temp_.Open().MakeDirs("root/real", 0755).ok());
    std::ofstream(temp_ / "root/real/file") << "content";
    ASSERT_EQ(::symlink("..", (temp_ / "root/up").c_str()), 0);
    ASSERT_EQ(::symlink("real", (temp_ / "root/inside").c_str()), 0);
    ASSERT_EQ(::symlink("../secret", (temp_ / "root/leak").c_str()), 0);
  }
  Dir root() const { return *temp_.Open().OpenDir("root"); }

  TempDir temp_;
};

TEST_F(DirTest, LinkToStaysBelowTheDirectory) {
  const Dir dir = root();
  ASSERT_TRUE(dir.MakeDir("other", 0755).ok());
  const Dir other = *dir.OpenDir("other");
  ASSERT_TRUE(dir.LinkTo("real/file", other, "same").ok());
  EXPECT_EQ(other.Stat("same")->inode, dir.Stat("real/file")->inode);
  EXPECT_TRUE(absl::IsAlreadyExists(dir.LinkTo("real/file", other, "same")));
  EXPECT_TRUE(absl::IsPermissionDenied(dir.LinkTo("inside/file", other, "through")));
  EXPECT_TRUE(absl::IsPermissionDenied(dir.LinkTo("up/secret", other, "out")));
  EXPECT_TRUE(absl::IsNotFound(dir.LinkTo("real/none", other, "none")));
  // Links the symbolic link itself: the caller checks the type of the result.
  ASSERT_TRUE(dir.LinkTo("leak", other, "leak").ok());
  EXPECT_EQ(other.Stat("leak")->type, FileType::kSymlink);
}

TEST(RelativePath, AcceptsOnlyPlainNames) {
  for (const std::string good : {"a", "a/b", "a..b", "..a", "a.", "\xc3\xa9"}) {
    EXPECT_TRUE(CheckRelativePath(good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("/"), std::string("/a"), std::string("a/"), std::string("a//b"),
        std::string("."), std::string(".."), std::string("a/./b"), std::string("a/../b"),
        std::string("a\0b", 3), std::string(256, 'n'), std::string(5000, 'a')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckRelativePath(bad))) << bad.substr(0, 20);
  }
}

TEST_F(DirTest, PathsCannotLeaveTheDirectory) {
  const Dir dir = root();
  for (const std::string path : {"../secret", "/etc/passwd", "real/../../secret", ".."}) {
    EXPECT_TRUE(absl::IsInvalidArgument(dir.OpenFile(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(dir.OpenDir(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(dir.CreateFile(path, 0644).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(dir.MakeDir(path, 0755))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(dir.MakeDirs(path, 0755))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(dir.Remove(path))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(dir.Rename("real", path))) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(dir.Stat(path).status())) << path;
    EXPECT_TRUE(absl::IsInvalidArgument(dir.SetMode(path, 0777))) << path;
  }
}

TEST_F(DirTest, PathsDoNotFollowLinks) {
  const Dir dir = root();
  EXPECT_TRUE(absl::IsPermissionDenied(dir.OpenFile("leak").status()));
  for (const std::string through : {"up", "inside"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(dir.OpenDir(through).status())) << through;
    EXPECT_TRUE(absl::IsPermissionDenied(dir.OpenFile(through + "/file").status())) << through;
    EXPECT_TRUE(absl::IsPermissionDenied(dir.CreateFile(through + "/x", 0644).status())) << through;
    EXPECT_TRUE(absl::IsPermissionDenied(dir.MakeDir(through + "/x", 0755))) << through;
    EXPECT_TRUE(absl::IsPermissionDenied(dir.Stat(through + "/file").status())) << through;
    EXPECT_TRUE(absl::IsPermissionDenied(dir.Remove(through + "/file"))) << through;
    EXPECT_TRUE(absl::IsPermissionDenied(dir.Rename(through + "/file", "x"))) << through;
    EXPECT_TRUE(absl::IsPermissionDenied(dir.SetMode(through, 0777))) << through;
    EXPECT_TRUE(absl::IsPermissionDenied(dir.SetOwner(through, 0, 0))) << through;
    EXPECT_TRUE(absl::IsPermissionDenied(dir.Touch(through + "/file"))) << through;
  }
  EXPECT_FALSE(dir.MakeDirs("up/x", 0755).ok());
  EXPECT_FALSE(dir.CreateFile("leak", 0644).ok());
  EXPECT_EQ(*ReadFile(temp_.Open(), "secret", 100), "secret");
}

TEST_F(DirTest, LinkThatAppearsDuringACallIsNotFollowed) {
  const Dir dir = root();
  ASSERT_TRUE(dir.MakeDir("swap", 0755).ok());
  std::ofstream(temp_ / "root/swap/secret") << "harmless";
  {
    std::jthread swapper([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        dir.Exchange("swap", "up").IgnoreError();
      }
    });
    for (int i = 0; i < 2000; ++i) {
      const auto text = ReadFile(dir, "swap/secret", 100);
      EXPECT_NE(text.value_or(""), "secret");
    }
  }
}

TEST_F(DirTest, ModesIgnoreTheUmask) {
  const mode_t before = ::umask(077);
  const Dir dir = root();
  EXPECT_TRUE(dir.MakeDirs("a/b", 0777).ok());
  EXPECT_TRUE(dir.CreateFile("a/b/c", 0666).ok());
  EXPECT_TRUE(WriteFileAtomic(dir, "a/b/d", "x", 0644).ok());
  ::umask(before);
  EXPECT_EQ(dir.Stat("a")->mode, 0777U);
  EXPECT_EQ(dir.Stat("a/b")->mode, 0777U);
  EXPECT_EQ(dir.Stat("a/b/c")->mode, 0666U);
  EXPECT_EQ(dir.Stat("a/b/d")->mode, 0644U);
}

TEST_F(DirTest, ExistingNamesAreNotRecreated) {
  const Dir dir = root();
  EXPECT_TRUE(absl::IsAlreadyExists(dir.MakeDir("real", 0755)));
  EXPECT_TRUE(absl::IsAlreadyExists(dir.CreateFile("real/file", 0644).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(dir.CreateFile("leak", 0644).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(dir.MakeDirs("real/file", 0755)));
  EXPECT_TRUE(dir.MakeDirs("real", 0700).ok());
  EXPECT_EQ(dir.Stat("real")->mode, 0755U);
}

TEST_F(DirTest, OpensOnlyRegularFiles) {
  const Dir dir = root();
  ASSERT_EQ(::mkfifo((temp_ / "root/fifo").c_str(), 0644), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(dir.OpenFile("fifo").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(dir.OpenFile("real").status()));
  EXPECT_TRUE(absl::IsNotFound(dir.OpenFile("none").status()));
}

TEST_F(DirTest, StatDoesNotFollowLinks) {
  const Dir dir = root();
  EXPECT_EQ(dir.Stat("leak")->type, FileType::kSymlink);
  EXPECT_EQ(dir.Stat("real")->type, FileType::kDirectory);
  EXPECT_EQ(dir.Stat("real/file")->type, FileType::kFile);
  EXPECT_EQ(dir.Stat("real/file")->bytes, 7);
  EXPECT_GT(dir.Stat("real/file")->mtime_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(*dir.ReadLink("leak"), "../secret");
  EXPECT_TRUE(*dir.Exists("leak"));
  EXPECT_FALSE(*dir.Exists("none"));
  EXPECT_FALSE(*dir.Exists("none/below"));
}

TEST_F(DirTest, TouchSetsTheMtimeToTheTimeOfTheFileSystem) {
  const Dir dir = root();
  const timespec old[] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (temp_ / "root/real/file").c_str(), old, 0), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, (temp_ / "secret").c_str(), old, 0), 0);
  ASSERT_EQ(::chmod((temp_ / "root/real/file").c_str(), 0444), 0);
  std::ofstream(temp_ / "root/now") << "now";
  EXPECT_TRUE(dir.Touch("real/file").ok());
  EXPECT_GE(dir.Stat("real/file")->mtime_ns, dir.Stat("now")->mtime_ns);
  EXPECT_TRUE(dir.Touch("leak").ok()) << "the link itself";
  EXPECT_EQ(temp_.Open().Stat("secret")->mtime_ns, 1'000'000'000);
  EXPECT_TRUE(absl::IsNotFound(dir.Touch("none")));
}

TEST_F(DirTest, RenameReplacesAndRenameNewDoesNot) {
  const Dir dir = root();
  ASSERT_TRUE(WriteFileAtomic(dir, "a", "a", 0644).ok());
  ASSERT_TRUE(WriteFileAtomic(dir, "b", "b", 0644).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(dir.RenameNew("a", "b")));
  ASSERT_TRUE(dir.Exchange("a", "b").ok());
  EXPECT_EQ(*ReadFile(dir, "a", 10), "b");
  ASSERT_TRUE(dir.Rename("a", "b").ok());
  EXPECT_EQ(*ReadFile(dir, "b", 10), "b");
  EXPECT_FALSE(*dir.Exists("a"));
  EXPECT_TRUE(absl::IsNotFound(dir.Exchange("a", "b")));
  ASSERT_TRUE(dir.RenameNew("b", "real/b").ok());
  EXPECT_TRUE(*dir.Exists("real/b"));
}

TEST_F(DirTest, ExchangeSwapsDirectoryAndLink) {
  const Dir dir = root();
  ASSERT_TRUE(dir.Exchange("inside", "real").ok());
  EXPECT_EQ(dir.Stat("inside")->type, FileType::kDirectory);
  EXPECT_EQ(dir.Stat("real")->type, FileType::kSymlink);
}

TEST_F(DirTest, RemovesFilesLinksAndEmptyDirectories) {
  const Dir dir = root();
  EXPECT_FALSE(dir.Remove("real").ok());
  EXPECT_TRUE(dir.Remove("leak").ok());
  EXPECT_TRUE(dir.Remove("real/file").ok());
  EXPECT_TRUE(dir.Remove("real").ok());
  EXPECT_TRUE(dir.Remove("real").ok());
  EXPECT_EQ(*ReadFile(temp_.Open(), "secret", 100), "secret");
}

TEST_F(DirTest, MissingRootIsNotFoundAndCanBeCreated) {
  EXPECT_TRUE(absl::IsNotFound(Dir::Open(temp_ / "none").status()));
  EXPECT_FALSE(Dir::Open(temp_ / "secret").ok());
  const auto made = Dir::OpenOrMake(temp_ / "x/y/z", 0750);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(temp_.Open().Stat("x/y")->mode, 0750U);
  EXPECT_TRUE(Dir::OpenOrMake(temp_ / "x/y/z", 0750).ok());
}

TEST_F(DirTest, SyncReachesTheDisk) {
  EXPECT_TRUE(root().Sync().ok());
  EXPECT_TRUE(root().Sync("real").ok());
  EXPECT_TRUE(root().SyncFileSystem().ok());
  EXPECT_FALSE(root().Sync("inside").ok());
}

}  // namespace
}  // namespace cachewarm::fs
