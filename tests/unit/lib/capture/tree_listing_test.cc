// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/tree_listing.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/fakes/cache_files.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::capture {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// A directory that DeepGEMM renames into place: its files are one unit.
const std::string kKernel = "deepgemm/cache/kernel.a.1/kernel.cubin";
const std::string kKernelSource = "deepgemm/cache/kernel.a.1/kernel.cu";
// Ninja compares the mtimes of the files of an extension.
const std::string kExtension = "torch_extensions/ext/ext.so";
const std::string kExtensionNinja = "torch_extensions/ext/build.ninja";

class TreeListingTest : public ::testing::Test {
 protected:
  TreeListingTest() {
    scratch_.Write(kIndexFile, "index");
    scratch_.Write(kKernel, "cubin");
    scratch_.Write(kKernelSource, "source");
  }

  absl::StatusOr<TreeListing> List(const ListLimits& limits = {}) {
    return ListTree(scratch_.Open(), caches::CacheTable::AllPresets(), limits);
  }
  std::vector<std::string> Paths() {
    listing_ = *List();
    std::vector<std::string> paths;
    for (const TreeFile& file : listing_.files) {
      paths.push_back(file.path);
    }
    return paths;
  }
  void Resize(const std::string& path, uintmax_t bytes) {
    std::filesystem::resize_file(scratch_ / path, bytes);
  }

  TempDir scratch_;
  TreeListing listing_;
};

TEST_F(TreeListingTest, NameThatNoBundleAllowsLeavesOutItsUnitOnly) {
  scratch_.Write("deepgemm/cache/kernel.a.1/kernel.cubin\nx", "x");
  scratch_.Write(kExtension, SharedObject("code"));
  scratch_.Write("torch_extensions/ext/.wh.x", "x");
  EXPECT_THAT(Paths(), ElementsAre(kIndexFile));
  EXPECT_EQ(listing_.left_behind.at("its name is not allowed in a bundle"), 2);
  EXPECT_EQ(listing_.left_behind.at("needs a file that is left out"), 3);
}

TEST_F(TreeListingTest, SparseFileOfTerabytesLeavesOutItsUnitOnly) {
  Resize(kKernel, uintmax_t{1} << 40U);
  EXPECT_THAT(Paths(), ElementsAre(kIndexFile));
  EXPECT_EQ(listing_.left_behind.at("larger than a file of a bundle may be"), 1);
  EXPECT_EQ(listing_.left_behind.at("needs a file that is left out"), 1);
}

TEST_F(TreeListingTest, SparseFileOfAGigabyteIsLeftOutToo) {
  Resize(kKernel, uintmax_t{1} << 30U);
  EXPECT_THAT(Paths(), ElementsAre(kIndexFile));
  EXPECT_EQ(listing_.left_behind.at("sparse"), 1);
  Resize(kKernel, uintmax_t{1} << 20U);
  EXPECT_THAT(Paths(), UnorderedElementsAre(kIndexFile, kKernel, kKernelSource))
      << "a small file may have a hole";
}

TEST_F(TreeListingTest, MtimeBefore1970MattersOnlyWhereItIsKept) {
  scratch_.Write(kExtension, SharedObject("code"));
  scratch_.Write(kExtensionNinja, "rule cc");
  const timespec old[] = {{.tv_sec = -10, .tv_nsec = 0}, {.tv_sec = -10, .tv_nsec = 0}};
  for (const std::string& path : {kExtension, kIndexFile}) {
    ASSERT_EQ(::utimensat(AT_FDCWD, (scratch_ / path).c_str(), old, 0), 0);
  }
  struct ::stat seen {};
  ASSERT_EQ(::stat((scratch_ / kExtension).c_str(), &seen), 0);
  if (seen.st_mtim.tv_sec >= 0) {
    GTEST_SKIP() << "this file system has no times before 1970";
  }
  EXPECT_THAT(Paths(), ElementsAre(kKernelSource, kKernel, kIndexFile));
  EXPECT_EQ(listing_.left_behind.at("modified before 1970"), 1);
}

TEST_F(TreeListingTest, StopsAtTheFilesOfABundle) {
  EXPECT_TRUE(List({.files_max = 3}).ok());
  const absl::Status status = List({.files_max = 2}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(status.message().find("more than 2 files"), std::string_view::npos) << status;
}

TEST_F(TreeListingTest, StopsAtTheBytesOfPaths) {
  const auto bytes =
      static_cast<int64_t>(kIndexFile.size() + kKernel.size() + kKernelSource.size());
  EXPECT_TRUE(List({.path_bytes_max = bytes}).ok());
  const absl::Status status = List({.path_bytes_max = bytes - 1}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

}  // namespace
}  // namespace cachewarm::capture
