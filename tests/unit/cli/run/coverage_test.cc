// SPDX-License-Identifier: Apache-2.0
#include "cli/run/coverage.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::cli {
namespace {

bundle::Config BundleOf(const std::vector<std::string>& paths) {
  bundle::Config config;
  for (const std::string& path : paths) {
    config.entries.push_back({.path = path});
  }
  return config;
}

std::vector<capture::TreeFile> FilesOf(const std::vector<std::string>& paths) {
  std::vector<capture::TreeFile> files;
  for (const std::string& path : paths) {
    files.push_back({.path = path});
  }
  return files;
}

TEST(Coverage, BundleWithEveryPathCoversTheFiles) {
  EXPECT_TRUE(Covers(BundleOf({"a", "b", "c"}), FilesOf({"a", "c"}), {}));
  EXPECT_TRUE(Covers(BundleOf({}), FilesOf({}), {}));
  EXPECT_FALSE(Covers(BundleOf({"a", "b", "c"}), FilesOf({"a", "d"}), {}));
  EXPECT_FALSE(Covers(BundleOf({}), FilesOf({"a"}), {}));
}

TEST(Coverage, ReplacedFileIsNotCovered) {
  EXPECT_FALSE(Covers(BundleOf({"a", "b"}), FilesOf({"a", "b"}), {"b"}));
  EXPECT_TRUE(Covers(BundleOf({"a", "b"}), FilesOf({"a"}), {"b"}));
}

TEST(Coverage, BundleHasMoreIfFilesLackAPath) {
  EXPECT_TRUE(HasMore(BundleOf({"a", "b"}), FilesOf({"b"})));
  EXPECT_FALSE(HasMore(BundleOf({"a", "b"}), FilesOf({"a", "b", "c"})));
  EXPECT_FALSE(HasMore(BundleOf({}), FilesOf({"a"})));
}

TEST(Coverage, FilesInBothSnapshotsThatDifferWereReplaced) {
  const TreeSnapshot before = {
      {"same", {1, 1}}, {"size", {1, 1}}, {"time", {1, 1}}, {"gone", {1, 1}}};
  const TreeSnapshot after = {
      {"same", {1, 1}}, {"size", {2, 1}}, {"time", {1, 2}}, {"new", {1, 1}}};
  EXPECT_THAT(ReplacedFiles(before, after), ::testing::ElementsAre("size", "time"));
}

}  // namespace
}  // namespace cachewarm::cli
