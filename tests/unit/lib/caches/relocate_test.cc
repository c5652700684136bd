// SPDX-License-Identifier: Apache-2.0
#include "lib/caches/relocate.h"

#include <gtest/gtest.h>

#include "lib/caches/cache_table.h"

namespace cachewarm::caches {
namespace {

std::optional<std::string> RelocateFile(std::string_view text, std::string_view path,
                                        std::string_view directory) {
  return Relocate(text, CacheTable::AllPresets().Classify(path), path, directory);
}

TEST(Relocate, GroupFileOfTritonNamesItsMembersInTheNewDirectory) {
  // As Triton 3.9 writes it.
  EXPECT_EQ(RelocateFile(R"({"child_paths": {"k.ttir": "/old/c/KEY/k.ttir", )"
                         R"("k.json": "/old/c/KEY/k.json"}})",
                         "triton/KEY/__grp__k.json", "/new/triton/KEY"),
            R"({"child_paths": {"k.ttir": "/new/triton/KEY/k.ttir", )"
            R"("k.json": "/new/triton/KEY/k.json"}})");
}

TEST(Relocate, IndexOfVllmNamesItsArtifactsInTheNewDirectory) {
  const std::string_view path =
      "vllm/torch_compile_cache/9f/rank_0_0/backbone/vllm_compile_cache.py";
  EXPECT_EQ(
      RelocateFile("{((1, 8), 0, 'inductor_standalone'): ('artifact_0', "
                   "'/root/.cache/vllm/torch_compile_cache/9f/rank_0_0/backbone/artifact_0')}",
                   path, "/m/vllm/torch_compile_cache/9f/rank_0_0/backbone"),
      "{((1, 8), 0, 'inductor_standalone'): ('artifact_0', "
      "'/m/vllm/torch_compile_cache/9f/rank_0_0/backbone/artifact_0')}");
}

TEST(Relocate, NestedCachesAreRewrittenToo) {
  EXPECT_EQ(RelocateFile(R"({"a": "/old/KEY/a"})", "inductor/triton/0/KEY/__grp__k.json", "/n/KEY"),
            R"({"a": "/n/KEY/a"})");
}

TEST(Relocate, TextWithTheRightPathsStaysAsItIs) {
  EXPECT_EQ(RelocateFile(R"({"a": "/n/KEY/a"})", "triton/KEY/__grp__k.json", "/n/KEY"),
            std::nullopt);
  EXPECT_EQ(RelocateFile("", "triton/KEY/__grp__k.json", "/n/KEY"), std::nullopt);
}

TEST(Relocate, OnlyPathsOfTheFilesDirectoryAreReplaced) {
  for (const char* text :
       {R"({"a": "/old/OTHER/a"})", R"({"a": "/old/KEY/below/a"})", R"({"a": "/old/KEY/"})",
        R"({"a": "old/KEY/a"})", R"({"a": "/old/xKEY/a"})", R"({"a": "/old/\"/KEY/a"})",
        R"({"a": "/old/KEY/a)", "/old/KEY/a", R"({"a": "/old/KEY/a'})"}) {
    EXPECT_EQ(RelocateFile(text, "triton/KEY/__grp__k.json", "/new/KEY"), std::nullopt) << text;
  }
}

TEST(Relocate, OtherFilesAreNeverRewritten) {
  for (const char* path : {"triton/KEY/k.json", "triton/__grp__k.json", "inductor/ab/cab.py",
                           "elsewhere/KEY/__grp__k.json"}) {
    EXPECT_EQ(RelocateFile(R"({"a": "/old/KEY/a"})", path, "/new/KEY"), std::nullopt) << path;
  }
}

TEST(Relocate, DirectoryThatCannotStandBetweenQuotesIsNotWritten) {
  for (const char* directory : {"/n'/KEY", "/n\"/KEY", "/n\\/KEY", "/n\n/KEY", "n/KEY", ""}) {
    EXPECT_EQ(RelocateFile(R"({"a": "/old/KEY/a"})", "triton/KEY/__grp__k.json", directory),
              std::nullopt)
        << directory;
  }
}

}  // namespace
}  // namespace cachewarm::caches
