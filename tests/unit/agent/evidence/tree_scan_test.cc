// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/tree_scan.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/fakes/temp_dir.h"

namespace cachewarm::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

struct Seen {
  std::vector<std::string> directories;
  std::vector<std::string> files;
  std::string closed;  // the directory whose contents are skipped

  ScanVisitor Visitor() {
    return {.directory =
                [this](std::string_view path, int fd) {
                  EXPECT_GE(fd, 0);
                  directories.emplace_back(path);
                  return closed.empty() || path != closed;
                },
            .file = [this](std::string_view path) { files.emplace_back(path); }};
  }
};

class TreeScan : public ::testing::Test {
 protected:
  void Write(const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(temp_ / path).parent_path());
    std::ofstream(temp_ / path) << "x";
  }

  TempDir temp_;
  Seen seen_;
};

TEST_F(TreeScan, VisitsDirectoryBeforeItsContents) {
  Write("a/b/f");
  Write("a/g");
  Write("h");
  EXPECT_TRUE(ScanTree(temp_.Open(), "", {}, seen_.Visitor()).status.ok());
  EXPECT_THAT(seen_.directories, ElementsAre("", "a", "a/b"));
  EXPECT_THAT(seen_.files, UnorderedElementsAre("a/b/f", "a/g", "h"));
}

TEST_F(TreeScan, ReportsPathsRelativeToRoot) {
  Write("a/b/f");
  Write("c/g");
  EXPECT_TRUE(ScanTree(temp_.Open(), "a", {}, seen_.Visitor()).status.ok());
  EXPECT_THAT(seen_.directories, ElementsAre("a", "a/b"));
  EXPECT_THAT(seen_.files, ElementsAre("a/b/f"));
}

TEST_F(TreeScan, FollowsNoLinks) {
  Write("real/f");
  std::filesystem::create_directory_symlink("/etc", temp_ / "etc");
  std::filesystem::create_directory_symlink("real", temp_ / "inside");
  EXPECT_TRUE(ScanTree(temp_.Open(), "", {}, seen_.Visitor()).status.ok());
  EXPECT_THAT(seen_.directories, ElementsAre("", "real"));
  EXPECT_THAT(seen_.files, ElementsAre("real/f"));
}

TEST_F(TreeScan, SkipsLinkAtDirectoryPath) {
  std::filesystem::create_directory_symlink("/etc", temp_ / "etc");
  EXPECT_TRUE(ScanTree(temp_.Open(), "etc", {}, seen_.Visitor()).status.ok());
  EXPECT_TRUE(seen_.directories.empty());
}

TEST_F(TreeScan, IgnoresMissingPath) {
  EXPECT_TRUE(ScanTree(temp_.Open(), "never/was", {}, seen_.Visitor()).status.ok());
  EXPECT_TRUE(seen_.directories.empty());
}

TEST_F(TreeScan, VisitorCanSkipDirectory) {
  Write("a/f");
  Write("b/g");
  seen_.closed = "a";
  EXPECT_TRUE(ScanTree(temp_.Open(), "", {}, seen_.Visitor()).status.ok());
  EXPECT_THAT(seen_.files, ElementsAre("b/g"));
}

TEST_F(TreeScan, CountsEveryName) {
  Write("a/f");
  std::filesystem::create_symlink("f", temp_ / "a/link");
  EXPECT_EQ(ScanTree(temp_.Open(), "", {}, seen_.Visitor()).names, 4);
}

TEST_F(TreeScan, StopsAtItsLimits) {
  for (int i = 0; i < 20; ++i) {
    Write("f" + std::to_string(i));
  }
  const ScanResult wide = ScanTree(temp_.Open(), "", {.entries_max = 10}, seen_.Visitor());
  EXPECT_TRUE(absl::IsResourceExhausted(wide.status));
  EXPECT_GE(wide.names, 10);
  const ScanResult long_names = ScanTree(temp_.Open(), "", {.name_bytes_max = 30}, seen_.Visitor());
  EXPECT_TRUE(absl::IsResourceExhausted(long_names.status));
  Write("d/d/d/d/f");
  EXPECT_TRUE(absl::IsResourceExhausted(
      ScanTree(temp_.Open(), "d", {.depth_max = 2}, seen_.Visitor()).status));
}

}  // namespace
}  // namespace cachewarm::agent
