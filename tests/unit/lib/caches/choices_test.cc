// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "lib/caches/cache_table.h"

namespace cachewarm::caches {
namespace {

using api::CacheChoice;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CacheChoice Own(const std::string& name, const std::string& env, const std::string& path = "") {
  return {.name = name, .env = env, .path = path, .include = {}};
}

TEST(UserCache, IsPointedBelowTheMountUnderItsName) {
  const auto table = CacheTable::Make({{.name = "triton"}, Own("my-engine", "MY_CACHE")});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->Env(), Contains(api::EnvVar{"MY_CACHE", "/var/cache/cachewarm/my-engine"}));
  EXPECT_THAT(table->Directories(), ElementsAre("my-engine", "triton"));
  EXPECT_TRUE(table->Classify("my-engine/any/thing").carried());
}

TEST(UserCache, ItsPathMayHaveParts) {
  const auto table = CacheTable::Make({Own("mine", "MY_CACHE", "engines/mine.v1")});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->Env(),
              ElementsAre(api::EnvVar{"MY_CACHE", "/var/cache/cachewarm/engines/mine.v1"}));
  EXPECT_THAT(table->Directories(), ElementsAre("engines"));
  EXPECT_EQ(table->Classify("engines/other/x").skip, Skip::kUnknownCache);
  EXPECT_EQ(table->Classify("engines/mine.v1").skip, Skip::kUnknownCache);
}

TEST(UserCache, IncludesOnlyWhatItsPatternsName) {
  CacheChoice own = Own("mine", "MY_CACHE");
  own.include = {"*.bin", "graphs/**"};
  const auto table = CacheTable::Make({own});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->Classify("mine/a.bin").carried());
  EXPECT_TRUE(table->Classify("mine/graphs/a/b").carried());
  EXPECT_EQ(table->Classify("mine/a.txt").skip, Skip::kNotAllowed);
  EXPECT_EQ(table->Classify("mine/d/a.bin").skip, Skip::kNotAllowed);
}

TEST(UserCache, LocksAndTemporaryFilesNeverTravel) {
  const auto table = CacheTable::Make({Own("mine", "MY_CACHE")});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Classify("mine/a.lock").skip, Skip::kLock);
  EXPECT_EQ(table->Classify("mine/a.tmp").skip, Skip::kTemporary);
  EXPECT_EQ(table->Classify("mine/engine.log").skip, Skip::kLog);
}

TEST(UserCache, GetsTheCarefulTreatment) {
  const auto table = CacheTable::Make({Own("mine", "MY_CACHE")});
  ASSERT_TRUE(table.ok()) << table.status();
  const Placement placement = table->Classify("mine/x");
  EXPECT_TRUE(placement.native);
  EXPECT_TRUE(placement.keep_mtime);
  EXPECT_TRUE(placement.writable);
  EXPECT_TRUE(placement.in_place);
  EXPECT_FALSE(placement.hard_link);
  EXPECT_EQ(placement.cache, "mine");
}

TEST(UserCache, RefusalsNameTheField) {
  CacheChoice bad_glob = Own("mine", "MY_CACHE");
  bad_glob.include = {"/abs"};
  CacheChoice many_globs = Own("mine", "MY_CACHE");
  many_globs.include.assign(33, "*");
  CacheChoice long_globs = Own("mine", "MY_CACHE");
  long_globs.include.assign(32, std::string(256, 'a'));
  CacheChoice preset_with_path{.name = "triton", .env = {}, .path = "x", .include = {}};
  const std::pair<std::vector<CacheChoice>, const char*> cases[] = {
      {{{.name = "tritn"}}, "spec.caches[0].name: no such preset; known are torchinductor"},
      {{{.name = ""}}, "spec.caches[0].name"},
      {{preset_with_path}, "spec.caches[0]: path and include"},
      {{{.name = "jax"}, Own("triton", "X")}, "spec.caches[1].name: triton is a preset"},
      {{Own("Mine", "X")}, "spec.caches[0].name: expected 1 to 40"},
      {{Own(std::string(41, 'a'), "X")}, "spec.caches[0].name"},
      {{Own("mine", "1X")}, "spec.caches[0].env"},
      {{Own("mine", "A B")}, "spec.caches[0].env"},
      {{Own("mine", std::string(129, 'A'))}, "spec.caches[0].env"},
      {{Own("mine", "HOME")}, "spec.caches[0].env"},
      {{Own("mine", "LD_PRELOAD")}, "spec.caches[0].env"},
      {{Own("mine", "TRITON_CACHE_DIR")}, "spec.caches[0].env: belongs to the preset triton"},
      {{Own("mine", "X", "/abs")}, "spec.caches[0].path"},
      {{Own("mine", "X", "../up")}, "spec.caches[0].path"},
      {{Own("mine", "X", "a//b")}, "spec.caches[0].path"},
      {{Own("mine", "X", "a/")}, "spec.caches[0].path"},
      {{Own("mine", "X", ".hidden")}, "spec.caches[0].path"},
      {{Own("mine", "X", "a b")}, "spec.caches[0].path"},
      {{Own("mine", "X", std::string(129, 'a'))}, "spec.caches[0].path"},
      {{Own("mine", "X", "triton")}, "spec.caches[0].path: overlaps the preset triton"},
      {{Own("mine", "X", "triton/sub")}, "spec.caches[0].path: overlaps the preset triton"},
      {{Own("a", "X", "p"), Own("b", "Y", "p/q")}, "spec.caches[1]: shares"},
      {{Own("a", "X"), Own("b", "X")}, "spec.caches[1]: shares"},
      {{Own("a", "X"), Own("a", "Y")}, "spec.caches[1]: shares"},
      {{bad_glob}, "spec.caches[0].include"},
      {{many_globs}, "spec.caches[0].include: more than 32"},
      {{long_globs}, "spec.caches: 8450 bytes, as a node is told of them, are over the limit"},
      {std::vector<CacheChoice>(33, {.name = "jax"}), "spec.caches: more than 32"},
  };
  for (const auto& [choices, message] : cases) {
    const absl::Status status = CacheTable::Make(choices).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

// What JSON writes as six bytes, 64 warmups of a node could fill its NodeCache with.
TEST(UserCache, PatternsAreWhatJsonHoldsAsItIs) {
  for (const char* glob : {"a<b", "a>b", "a&b", "a\"b", "a\\b", "a\tb", "\xc3\xa4", "a\x7f", ""}) {
    CacheChoice choice = Own("mine", "MY_CACHE");
    choice.include = {glob};
    EXPECT_THAT(CacheTable::Make({choice}).status().message(), HasSubstr("printable ASCII"))
        << glob;
  }
  CacheChoice choice = Own("mine", "MY_CACHE");
  choice.include = {"**/*.so", "[a-z]?/{x,y}~ !#$%'()+,-.:;=@^_`|"};
  EXPECT_TRUE(CacheTable::Make({choice}).ok());
}

TEST(UserCache, NamesThatOnlyBeginAlikeAreDisjoint) {
  EXPECT_TRUE(CacheTable::Make({Own("a", "X", "triton2"), Own("b", "Y", "triton22")}).ok());
}

}  // namespace
}  // namespace cachewarm::caches
