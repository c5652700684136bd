// SPDX-License-Identifier: Apache-2.0
#include "cli/collect.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/fs/file.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::cli {
namespace {

class CollectTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    const size_t slash = path.rfind('/');
    ASSERT_TRUE(slash == std::string::npos || dir_.MakeDirs(path.substr(0, slash), 0755).ok());
    ASSERT_TRUE(fs::WriteFileAtomic(dir_, path, content, 0644).ok());
  }
  Collection Collect() {
    auto collection = CollectTree(dir_, caches::CacheTable::AllPresets());
    EXPECT_TRUE(collection.ok()) << collection.status();
    return *std::move(collection);
  }

  TempDir temp_;
  fs::Dir dir_ = temp_.Open();
};

TEST_F(CollectTest, CollectsFilesOfKnownCaches) {
  Write("inductor/ab/cabcd.py", "print(1)\n");
  Write("inductor/locks/x.lock", "");
  Write("notes.txt", "mine");
  const Collection collection = Collect();
  ASSERT_EQ(collection.files.size(), 1U);
  EXPECT_EQ(collection.files[0].path, "inductor/ab/cabcd.py");
  EXPECT_EQ(collection.files[0].kind, "torchinductor");
  EXPECT_EQ(collection.files[0].bytes, 9);
  EXPECT_EQ(collection.files[0].mtime_ns, 0);
  int64_t left = 0;
  for (const auto& [reason, count] : collection.left_behind) {
    left += count;
  }
  EXPECT_EQ(left, 2);
}

TEST_F(CollectTest, CollectsFilesOfTheTableAndTheNamedOnes) {
  Write("inductor/ab/cabcd.py", "print(1)\n");
  Write("inductor/ab/cefgh.py", "print(1)\n");
  Write("triton/KEY/__grp__k.json", "{}");
  const auto table = caches::CacheTable::Make({{.name = "triton"}});
  ASSERT_TRUE(table.ok()) << table.status();
  const auto paths = [](const Collection& collection) {
    std::vector<std::string> out;
    for (const auto& file : collection.files) {
      out.push_back(file.path);
    }
    return out;
  };
  EXPECT_THAT(paths(*CollectTree(dir_, *table)),
              ::testing::ElementsAre("triton/KEY/__grp__k.json"));
  EXPECT_THAT(paths(*CollectTree(dir_, *table, {"inductor/ab/cefgh.py", "notes.txt"})),
              ::testing::ElementsAre("inductor/ab/cefgh.py", "triton/KEY/__grp__k.json"));
}

TEST_F(CollectTest, SkipsLinks) {
  Write("inductor/ab/cabcd.py", "print(1)\n");
  std::filesystem::create_symlink("/etc/passwd", temp_ / "inductor/ab/cevil.py");
  const Collection collection = Collect();
  EXPECT_EQ(collection.files.size(), 1U);
  EXPECT_EQ(collection.left_behind.at("not a regular file"), 1);
}

TEST_F(CollectTest, TruncatedObjectIsSkippedWithItsUnit) {
  Write("inductor/ab/cabcd.main.so", "");
  Write("inductor/ab/cabcd.main.cpp", "int main() {}");
  Write("inductor/ab/cefgh.py", "print(1)\n");
  const Collection collection = Collect();
  ASSERT_EQ(collection.files.size(), 1U);
  EXPECT_EQ(collection.files[0].path, "inductor/ab/cefgh.py");
  EXPECT_EQ(collection.left_behind.at("unusable because a file that they need is truncated"), 1);
  ASSERT_EQ(collection.selection.truncated.size(), 1U);
  EXPECT_THAT(collection.selection.truncated[0], ::testing::HasSubstr("cabcd.main.so"));
}

TEST_F(CollectTest, ChangeBeforePackingIsAborted) {
  Write("inductor/ab/cabcd.py", "print(1)\n");
  const Collection collection = Collect();
  Write("inductor/ab/cabcd.py", "print(2)\n");
  EXPECT_TRUE(absl::IsAborted(collection.files[0].open().status()));
}

TEST_F(CollectTest, ChangeDuringPackingIsAborted) {
  Write("inductor/ab/cabcd.py", "print(1)\n");
  const Collection collection = Collect();
  const auto source = collection.files[0].open();
  ASSERT_TRUE(source.ok()) << source.status();
  std::string buffer(4, '\0');
  EXPECT_EQ(*(*source)->Read(buffer), 4U);
  std::ofstream(temp_ / "inductor/ab/cabcd.py", std::ios::app) << "more";
  absl::Status status;
  while (status.ok()) {
    const auto got = (*source)->Read(buffer);
    status = got.status();
    ASSERT_TRUE(!got.ok() || *got > 0);
  }
  EXPECT_TRUE(absl::IsAborted(status)) << status;
}

}  // namespace
}  // namespace cachewarm::cli
