// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/left_behind.h"

#include <gmock/gmock.h>

#include "fmt/format.h"
#include "lib/base/utf8.h"
#include "lib/capture/tree_listing.h"
#include "tests/fakes/cache_files.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::capture {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(LeftBehind, NamesTheLargestDirectoriesFirst) {
  LeftBehindSum sum;
  sum.Add("small/x", 10);
  sum.Add("large/a/b/x", 4000);
  sum.Add("large/a/b/y", 5000);
  sum.Add("at_the_root", 1);
  const api::LeftBehind left = sum.Take();
  EXPECT_EQ(left.files, 4);
  EXPECT_EQ(left.bytes, 9011);
  EXPECT_THAT(left.directories, ElementsAre("large/a/b", "small", "."));
  EXPECT_EQ(ToText(left), "4 files, 0.0 MB in large/a/b, small, .");
}

TEST(LeftBehind, OfNothingIsEmpty) {
  const api::LeftBehind left = LeftBehindSum().Take();
  EXPECT_EQ(left, api::LeftBehind{});
  EXPECT_EQ(ToText(left), "");
}

TEST(LeftBehind, NamesAtMostFourComponents) {
  LeftBehindSum sum;
  sum.Add("flashinfer/.cache/flashinfer/autotune/v3/00/x", 1);
  EXPECT_THAT(sum.Take().directories, ElementsAre("flashinfer/.cache/flashinfer/autotune"));
}

TEST(LeftBehind, MergesDirectoriesUntilEightAreLeft) {
  LeftBehindSum sum;
  for (int i = 0; i < 9; ++i) {
    sum.Add(fmt::format("new_engine/kernels/{}/x", i), 100);
  }
  sum.Add("other/a/b/x", 1);
  EXPECT_THAT(sum.Take().directories, ElementsAre("new_engine/kernels", "other/a"));
}

TEST(LeftBehind, CountsEveryFileOfManyDirectories) {
  LeftBehindSum sum;
  for (int i = 0; i < 100'000; ++i) {
    sum.Add(fmt::format("{}/{}/{}/x", i % 500, i % 7, i), 2);
  }
  sum.Add("499/large", 1'000'000);
  const api::LeftBehind left = sum.Take();
  EXPECT_EQ(left.files, 100'001);
  EXPECT_EQ(left.bytes, 1'200'000);
  EXPECT_THAT(left.directories, SizeIs(8));
}

TEST(LeftBehind, EscapesAndCutsNames) {
  LeftBehindSum sum;
  sum.Add("new\nline/x", 4);
  sum.Add("not\xffutf8/x", 3);
  sum.Add("größe/x", 2);
  std::string umlauts;
  for (int i = 0; i < 200; ++i) {
    umlauts += "ö";
  }
  sum.Add(umlauts + "/x", 1);
  const api::LeftBehind left = sum.Take();
  ASSERT_THAT(left.directories, SizeIs(4));
  EXPECT_EQ(left.directories[0], "new\\x0aline");
  EXPECT_EQ(left.directories[1], "not\\xffutf8");
  EXPECT_EQ(left.directories[2], "größe");
  EXPECT_LE(left.directories[3].size(), 128U);
  EXPECT_TRUE(left.directories[3].ends_with("ö..."));
  EXPECT_TRUE(IsUtf8(left.directories[3]));
}

class UnnamedFiles : public ::testing::Test {
 protected:
  api::LeftBehind Unnamed(const caches::CacheTable& table = caches::CacheTable::DefaultPresets()) {
    return ListTree(scratch_.Open(), table)->unnamed;
  }
  TempDir scratch_;
};

TEST_F(UnnamedFiles, OfAnUnknownFolderOfTenMegabytesAreReported) {
  scratch_.Write(kIndexFile, "index");
  scratch_.Write(kLockFile, "");
  scratch_.Write("vllm/startup_plan/startup_plan_00.json", "{}");
  scratch_.Write("vllm/torch_compile_cache/ab/rank_0_0/backbone/cache_key_factors.json", "{}");
  EXPECT_EQ(Unnamed(), api::LeftBehind{}) << "rows name all of these";
  scratch_.Write("new_engine/kernels/a.bin", std::string(10'000'000, 'x'));
  scratch_.Write("vllm/new_place/b.bin", "x");
  const api::LeftBehind left = Unnamed();
  EXPECT_EQ(left.files, 2);
  EXPECT_EQ(left.bytes, 10'000'001);
  EXPECT_THAT(left.directories, ElementsAre("new_engine/kernels", "vllm/new_place"));
  EXPECT_EQ(ToText(left), "2 files, 10.0 MB in new_engine/kernels, vllm/new_place");
}

TEST_F(UnnamedFiles, OfAnotherKindAreNotReported) {
  scratch_.Write(kIndexFile, "index");
  scratch_.Write("aiter/module_norm.so", SharedObject("code"));
  EXPECT_EQ(Unnamed(*caches::CacheTable::Make({{.name = "triton"}})), api::LeftBehind{});
}

TEST_F(UnnamedFiles, OfCachewarmItselfAreIgnored) {
  scratch_.Write(".cachewarm/machine.json", "{}");
  scratch_.Write("vllm/.cachewarm/x", "x");
  EXPECT_THAT(Unnamed().directories, ElementsAre("vllm/.cachewarm"));
}

}  // namespace
}  // namespace cachewarm::capture
