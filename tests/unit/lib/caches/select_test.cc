// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "lib/caches/cache_table.h"

namespace cachewarm::caches {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Select(const std::vector<std::string>& present,
                                const std::set<std::string, std::less<>>& used) {
  return CacheTable::AllPresets().SelectUsed(present, used);
}

TEST(SelectUsed, KeepsTheOrderOfPresentFiles) {
  EXPECT_THAT(Select({"jax/b-cache", "jax/c-cache", "jax/a-cache"}, {"jax/a-cache", "jax/b-cache"}),
              ElementsAre("jax/b-cache", "jax/a-cache"));
}

TEST(SelectUsed, SkipsUsedFilesThatAreNotCarried) {
  EXPECT_THAT(Select({"inductor/locks/a.lock", "other/x", "inductor/x"},
                     {"inductor/locks/a.lock", "other/x", "inductor/x"}),
              IsEmpty());
}

TEST(SelectUsed, SkipsUsedFilesThatAreGone) {
  EXPECT_THAT(Select({}, {"jax/a-cache"}), IsEmpty());
}

TEST(SelectUsed, SelectsWholeTritonKernels) {
  // A lookup opens the group file and the cubin; the rest must merely exist.
  EXPECT_THAT(Select({"triton/A/__grp__k.json", "triton/A/k.cubin", "triton/A/k.ttir",
                      "triton/B/__grp__k.json", "triton/B/k.cubin"},
                     {"triton/A/__grp__k.json"}),
              ElementsAre("triton/A/__grp__k.json", "triton/A/k.cubin", "triton/A/k.ttir"));
}

TEST(SelectUsed, SelectsTheSourceOfADeepGemmKernel) {
  EXPECT_THAT(
      Select({"deepgemm/cache/kernel.a/kernel.cu", "deepgemm/cache/kernel.a/kernel.cubin"},
             {"deepgemm/cache/kernel.a/kernel.cubin"}),
      ElementsAre("deepgemm/cache/kernel.a/kernel.cu", "deepgemm/cache/kernel.a/kernel.cubin"));
}

TEST(SelectUsed, SelectsInductorProbesWithoutAnEvent) {
  EXPECT_THAT(
      Select({"inductor/ab/cab.cpp", "inductor/ab/cab.so", "inductor/ab/cab.so.load_ok",
              "inductor/cd/ccd.main.cpp", "inductor/cd/ccd.main.so", "inductor/ef/cef.main.so"},
             {"inductor/cd/ccd.main.so"}),
      ElementsAre("inductor/ab/cab.cpp", "inductor/ab/cab.so", "inductor/ab/cab.so.load_ok",
                  "inductor/cd/ccd.main.cpp", "inductor/cd/ccd.main.so"));
}

TEST(SelectUsed, SkipsUnusedEntriesOfASeed) {
  EXPECT_THAT(Select({"inductor/fxgraph/aa/fnew/1", "inductor/fxgraph/aa/fold/1",
                      "inductor/aotautograd/aold/1"},
                     {"inductor/fxgraph/aa/fnew/1"}),
              ElementsAre("inductor/fxgraph/aa/fnew/1"));
}

TEST(SelectUsed, SelectsAllGuardVariantsOfAGraph) {
  EXPECT_THAT(Select({"inductor/fxgraph/aa/fk/1", "inductor/fxgraph/aa/fk/2"},
                     {"inductor/fxgraph/aa/fk/2"}),
              ElementsAre("inductor/fxgraph/aa/fk/1", "inductor/fxgraph/aa/fk/2"));
}

TEST(SelectUsed, SelectsAllAutotuneResultsOfASetOrNone) {
  const std::string set = "sglang/flashinfer/autotune/0.7.0/90a/ff/";
  const std::string other = "vllm/flashinfer_autotune_cache/0.7.0/90a/ff/autotune_configs.json";
  EXPECT_THAT(Select({set + "rank0.json", set + "rank1.json", other}, {set + "rank0.json"}),
              ElementsAre(set + "rank0.json", set + "rank1.json"));
}

TEST(SelectUsed, SelectsSourcesOfNinjaWithoutAnEvent) {
  const std::string op = "flashinfer/.cache/flashinfer/1/90a/cached_ops/moe/";
  const std::string other = "flashinfer/.cache/flashinfer/1/90a/cached_ops/old/old.so";
  const std::string source = "flashinfer/.cache/flashinfer/1/90a/generated/moe/a.cu";
  EXPECT_THAT(
      Select({op + ".ninja_log", op + "a.cuda.o", op + "moe.so", other, source}, {op + "moe.so"}),
      ElementsAre(op + ".ninja_log", op + "a.cuda.o", op + "moe.so", source));
}

}  // namespace
}  // namespace cachewarm::caches
