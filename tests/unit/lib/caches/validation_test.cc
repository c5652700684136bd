// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "lib/caches/cache_table.h"

namespace cachewarm::caches {
namespace {

using api::CacheChoice;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CacheChoice Custom(const std::string& name, const std::string& env, const std::string& path = "") {
  return {.name = name, .env = env, .path = path, .include = {}};
}

TEST(CustomCache, IsBelowTheMountUnderItsName) {
  const auto table = CacheTable::Make({{.name = "triton"}, Custom("my-engine", "MY_CACHE")});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->Env(), Contains(api::EnvVar{"MY_CACHE", "/var/cache/cachewarm/my-engine"}));
  EXPECT_THAT(table->Directories(), ElementsAre("my-engine", "triton"));
  EXPECT_TRUE(table->Classify("my-engine/any/thing").carried());
}

TEST(CustomCache, AcceptsAPathOfSeveralComponents) {
  const auto table = CacheTable::Make({Custom("mine", "MY_CACHE", "engines/mine.v1")});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->Env(),
              ElementsAre(api::EnvVar{"MY_CACHE", "/var/cache/cachewarm/engines/mine.v1"}));
  EXPECT_THAT(table->Directories(), ElementsAre("engines"));
  EXPECT_EQ(table->Classify("engines/other/x").skip, Skip::kUnknownCache);
  EXPECT_EQ(table->Classify("engines/mine.v1").skip, Skip::kUnknownCache);
}

TEST(CustomCache, CarriesOnlyIncludedFiles) {
  CacheChoice cache = Custom("mine", "MY_CACHE");
  cache.include = {"*.bin", "graphs/**"};
  const auto table = CacheTable::Make({cache});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->Classify("mine/a.bin").carried());
  EXPECT_TRUE(table->Classify("mine/graphs/a/b").carried());
  EXPECT_EQ(table->Classify("mine/a.txt").skip, Skip::kNotAllowed);
  EXPECT_EQ(table->Classify("mine/d/a.bin").skip, Skip::kNotAllowed);
}

TEST(CustomCache, SkipsLocksTemporaryFilesAndLogs) {
  const auto table = CacheTable::Make({Custom("mine", "MY_CACHE")});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Classify("mine/a.lock").skip, Skip::kLock);
  EXPECT_EQ(table->Classify("mine/a.tmp").skip, Skip::kTemporary);
  EXPECT_EQ(table->Classify("mine/engine.log").skip, Skip::kLog);
}

TEST(CustomCache, TreatsEveryFileAsNativeAndWritable) {
  const auto table = CacheTable::Make({Custom("mine", "MY_CACHE")});
  ASSERT_TRUE(table.ok()) << table.status();
  const Placement placement = table->Classify("mine/x");
  EXPECT_TRUE(placement.native);
  EXPECT_TRUE(placement.keep_mtime);
  EXPECT_TRUE(placement.writable);
  EXPECT_TRUE(placement.in_place);
  EXPECT_FALSE(placement.hard_link);
  EXPECT_EQ(placement.cache, "mine");
}

TEST(CacheValidation, NamesTheFieldAndTheReason) {
  CacheChoice bad_glob = Custom("mine", "MY_CACHE");
  bad_glob.include = {"/abs"};
  CacheChoice many_globs = Custom("mine", "MY_CACHE");
  many_globs.include.assign(33, "*");
  CacheChoice long_globs = Custom("mine", "MY_CACHE");
  long_globs.include.assign(32, std::string(256, 'a'));
  CacheChoice preset_with_path{.name = "triton", .env = {}, .path = "x", .include = {}};
  const std::pair<std::vector<CacheChoice>, const char*> cases[] = {
      {{{.name = "jax"}, {.name = "tritn"}},
       "spec.caches[1].name: \"tritn\" is not a cache kind that cachewarm knows (known: "
       "torchinductor, triton, "},
      {{{.name = "tritn"}}, "; remove it, or define it with env, path and include"},
      {{{.name = ""}}, "spec.caches[0].name"},
      {{preset_with_path}, "spec.caches[0]: path and include"},
      {{{.name = "jax"}, Custom("triton", "X")}, "spec.caches[1].name: \"triton\" is a cache kind"},
      {{Custom("Mine", "X")}, "spec.caches[0].name: expected 1 to 40 characters"},
      {{Custom(std::string(41, 'a'), "X")}, "spec.caches[0].name"},
      {{Custom("mine", "1X")}, "spec.caches[0].env"},
      {{Custom("mine", "A B")}, "spec.caches[0].env"},
      {{Custom("mine", std::string(129, 'A'))}, "spec.caches[0].env"},
      {{Custom("mine", "HOME")}, "spec.caches[0].env"},
      {{Custom("mine", "LD_PRELOAD")}, "spec.caches[0].env"},
      {{Custom("mine", "TRITON_CACHE_DIR")}, "spec.caches[0].env: is set by the preset triton"},
      {{Custom("mine", "X", "/abs")}, "spec.caches[0].path"},
      {{Custom("mine", "X", "../up")}, "spec.caches[0].path"},
      {{Custom("mine", "X", "a//b")}, "spec.caches[0].path"},
      {{Custom("mine", "X", "a/")}, "spec.caches[0].path"},
      {{Custom("mine", "X", ".hidden")}, "spec.caches[0].path"},
      {{Custom("mine", "X", "a b")}, "spec.caches[0].path"},
      {{Custom("mine", "X", std::string(129, 'a'))}, "spec.caches[0].path"},
      {{Custom("mine", "X", "triton")},
       "spec.caches[0].path: overlaps the directory of the preset triton"},
      {{Custom("mine", "X", "triton/sub")},
       "spec.caches[0].path: overlaps the directory of the preset triton"},
      {{Custom("a", "X", "p"), Custom("b", "Y", "p/q")},
       "spec.caches[1]: has the name or env of the cache a"},
      {{Custom("a", "X"), Custom("b", "X")}, "spec.caches[1]: has the name or env of the cache a"},
      {{Custom("a", "X"), Custom("a", "Y")}, "spec.caches[1]: has the name or env of the cache a"},
      {{bad_glob}, "spec.caches[0].include"},
      {{many_globs}, "spec.caches[0].include: at most 32 patterns"},
      {{long_globs}, "spec.caches: 8450 bytes in a NodeCache exceed the limit of 5120"},
      {std::vector<CacheChoice>(33, {.name = "jax"}), "spec.caches: more than 32"},
  };
  for (const auto& [entries, message] : cases) {
    const absl::Status status = CacheTable::Make(entries).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

// JSON escapes take six bytes: the patterns of 256 warmups could exceed the size of a NodeCache.
TEST(CacheValidation, RefusesPatternsThatJsonEscapes) {
  for (const char* glob : {"a<b", "a>b", "a&b", "a\"b", "a\\b", "a\tb", "\xc3\xa4", "a\x7f", ""}) {
    CacheChoice cache = Custom("mine", "MY_CACHE");
    cache.include = {glob};
    EXPECT_THAT(CacheTable::Make({cache}).status().message(), HasSubstr("printable ASCII")) << glob;
  }
  CacheChoice cache = Custom("mine", "MY_CACHE");
  cache.include = {"**/*.so", "[a-z]?/{x,y}~ !#$%'()+,-.:;=@^_`|"};
  EXPECT_TRUE(CacheTable::Make({cache}).ok());
}

TEST(CacheValidation, AcceptsTheLongestFields) {
  CacheChoice cache = Custom("az09-" + std::string(35, 'n'), "_AZaz09" + std::string(121, 'E'),
                             "Az0/_a.-/9" + std::string(118, 'p'));
  ASSERT_EQ(cache.name.size(), 40U);
  ASSERT_EQ(cache.env.size(), 128U);
  ASSERT_EQ(cache.path.size(), 128U);
  cache.include.assign(12, std::string(256, 'g'));
  const absl::Status status = CacheTable::Make({cache}).status();
  EXPECT_TRUE(status.ok()) << status;
  cache.include.assign(1, std::string(257, 'g'));
  EXPECT_THAT(CacheTable::Make({cache}).status().message(), HasSubstr(".include"));
  cache.include.assign(32, "g");
  EXPECT_TRUE(CacheTable::Make({cache}).ok());
  EXPECT_TRUE(CacheTable::Make(std::vector<CacheChoice>(32, {.name = "jax"})).ok());
}

TEST(CacheValidation, LimitsTheEncodedSizeToTheByte) {
  // 150 for the entry, 3 for each pattern, and the texts.
  CacheChoice cache = Custom("mine", "MY_CACHE", "dir");
  const size_t rest = 5120 - (150 + 4 + 8 + 3);
  cache.include.assign(19, std::string(255, 'g'));
  cache.include.emplace_back(rest - 19 * 258 - 3, 'g');
  EXPECT_TRUE(CacheTable::Make({cache}).ok()) << CacheTable::Make({cache}).status();
  cache.include.back() += 'g';
  EXPECT_THAT(CacheTable::Make({cache}).status().message(), HasSubstr("5121 bytes"));
}

TEST(CacheValidation, RefusesEveryReservedVariable) {
  for (const char* env :
       {"HOME", "PATH", "PYTHONPATH", "USER", "LD_PRELOAD", "LD_LIBRARY_PATH", "PWD", "SHELL"}) {
    EXPECT_THAT(CacheTable::Make({Custom("mine", env)}).status().message(), HasSubstr(".env"))
        << env;
  }
}

TEST(CacheValidation, RefusesOtherCharacters) {
  for (const char* name : {"a_b", "A", "a.b", "`", "{", "/", ":"}) {
    EXPECT_FALSE(CacheTable::Make({Custom(name, "X", "p")}).ok()) << name;
  }
  for (const char* env : {"A-B", "A.B", "A@", "A[", "A`", "A{", "A/", "A:", "9A"}) {
    EXPECT_FALSE(CacheTable::Make({Custom("mine", env)}).ok()) << env;
  }
  for (const char* path : {"-a", "a/-b", "a/.b", "a@", "a[", "a`", "a{", "a:b", "/", "a/b/"}) {
    EXPECT_FALSE(CacheTable::Make({Custom("mine", "X", path)}).ok()) << path;
  }
}

TEST(CacheValidation, AcceptsPathsWithACommonPrefix) {
  EXPECT_TRUE(CacheTable::Make({Custom("a", "X", "triton2"), Custom("b", "Y", "triton22")}).ok());
}

}  // namespace
}  // namespace cachewarm::caches
