// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <set>

#include "lib/api/names.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::caches {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(CacheTable, PointsEveryPresetBelowTheMount) {
  const std::vector<api::EnvVar> env = CacheTable::AllPresets().Env();
  const api::EnvVar expected[] = {
      {"CUDA_CACHE_PATH", "/var/cache/cachewarm/cuda"},
      {"DG_JIT_CACHE_DIR", "/var/cache/cachewarm/deepgemm"},
      {"FLASHINFER_WORKSPACE_BASE", "/var/cache/cachewarm/flashinfer"},
      {"JAX_COMPILATION_CACHE_DIR", "/var/cache/cachewarm/jax"},
      {"SGLANG_CACHE_DIR", "/var/cache/cachewarm/sglang"},
      {"SGLANG_DG_CACHE_DIR", "/var/cache/cachewarm/deepgemm"},
      {"TILELANG_CACHE_DIR", "/var/cache/cachewarm/tilelang"},
      {"TORCHINDUCTOR_CACHE_DIR", "/var/cache/cachewarm/inductor"},
      {"TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0"},
      {"TORCH_EXTENSIONS_DIR", "/var/cache/cachewarm/torch_extensions"},
      {"TRITON_CACHE_DIR", "/var/cache/cachewarm/triton"},
      {"VLLM_CACHE_ROOT", "/var/cache/cachewarm/vllm"},
  };
  for (const api::EnvVar& variable : expected) {
    EXPECT_THAT(env, Contains(variable));
  }
}

TEST(CacheTable, StrictVariablesAreThoseOfTheSelectedEngines) {
  const auto strict_env = [](const std::vector<api::CacheChoice>& entries) {
    return CacheTable::Make(entries).value().StrictEnv();
  };
  const api::EnvVar sglang{"SGLANG_CRASH_ON_JIT_COMPILE", "1"};
  const api::EnvVar vllm{"VLLM_FORCE_AOT_LOAD", "1"};
  EXPECT_THAT(strict_env({}), ElementsAre(sglang, vllm)) << "every preset";
  EXPECT_THAT(strict_env({{.name = "triton"}, {.name = "vllm"}}), ElementsAre(vllm));
  EXPECT_THAT(strict_env({{.name = "triton"}, {.name = "own", .env = "OWN"}}), ElementsAre());
  EXPECT_THAT(ProvablePresetNames(), ElementsAre("vllm", "sglang"));
}

TEST(CacheTable, SetsEachVariableOnceInOrder) {
  std::vector<std::string> names;
  for (const api::EnvVar& variable : CacheTable::AllPresets().Env()) {
    names.push_back(variable.name);
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(CacheTable, GivesEachCacheItsOwnDirectory) {
  const std::vector<std::string> directories = CacheTable::AllPresets().Directories();
  EXPECT_EQ(directories.size(), PresetNames().size());
  EXPECT_THAT(directories, Contains("inductor"));
  EXPECT_EQ(std::set<std::string>(directories.begin(), directories.end()).size(),
            directories.size());
}

TEST(CacheTable, SelectsEveryPresetByDefault) {
  const auto table = CacheTable::Make({});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Env(), CacheTable::DefaultPresets().Env());
  EXPECT_EQ(table->Directories(), CacheTable::DefaultPresets().Directories());
}

TEST(CacheTable, SelectsAnOptInPresetOnlyByName) {
  const api::EnvVar variable = {"AITER_JIT_DIR", "/var/cache/cachewarm/aiter"};
  EXPECT_THAT(CacheTable::DefaultPresets().Env(), Not(Contains(variable)));
  EXPECT_EQ(CacheTable::DefaultPresets().Classify("aiter/module_norm.so").skip,
            Skip::kUnknownCache);
  EXPECT_THAT(CacheTable::AllPresets().Env(), Contains(variable));
  const auto named = CacheTable::Make({{.name = "triton"}, {.name = "aiter"}});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(named->Env(), Contains(variable));
  EXPECT_TRUE(named->Classify("aiter/module_norm.so").carried());
}

TEST(CacheTable, TurnsTheRedisCachesOfTorchOnOnlyByName) {
  const auto named = CacheTable::Make({{.name = "torchinductor-redis"}});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_THAT(named->Env(),
              ElementsAre(api::EnvVar{"TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE", "1"},
                          api::EnvVar{"TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE", "1"},
                          api::EnvVar{"TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE", "1"},
                          api::EnvVar{"TORCHINDUCTOR_REDIS_URL",
                                      "unix:///var/cache/cachewarm/redis/endpoint.sock"}));
  EXPECT_TRUE(named->Selects("torchinductor-redis"));
  EXPECT_FALSE(named->Selects("torchinductor"));
  EXPECT_FALSE(CacheTable::DefaultPresets().Selects("torchinductor-redis"));
}

// torch prefers the URL to host and port.
TEST(CacheTable, SetsNoUrlInAContainerThatNamesTheHostOfItsRedis) {
  const auto named = CacheTable::Make({{.name = "torchinductor-redis"}});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->Env({"TORCHINDUCTOR_REDIS_HOST"}).size(), named->Env().size() - 1);
  EXPECT_EQ(named->Env({"TORCHINDUCTOR_REDIS_PORT", ""}), named->Env());
}

TEST(CacheTable, CapturesTheValuesOfTheRedisEndpointAndNotItsSocket) {
  const CacheTable& table = CacheTable::AllPresets();
  const Placement value = table.Classify("redis/" + std::string(64, 'a') + ".value");
  EXPECT_TRUE(value.carried());
  EXPECT_EQ(value.role, Role::kIndex);
  EXPECT_TRUE(value.native);
  EXPECT_TRUE(value.hard_link);
  EXPECT_EQ(value.mode(), 0444U);
  EXPECT_EQ(table.Classify("redis/endpoint.sock").skip, Skip::kNotAllowed);
  EXPECT_EQ(table.Classify("redis/a/b.value").skip, Skip::kNotAllowed);
}

TEST(CacheTable, PointsAVariableBelowTheDirectoryOfItsKind) {
  const std::vector<api::EnvVar> env = CacheTable::AllPresets().Env();
  EXPECT_THAT(env,
              Contains(api::EnvVar{"SGLANG_JIT_CACHE_DIR", "/var/cache/cachewarm/sglang/jit"}));
  EXPECT_THAT(env, Contains(api::EnvVar{"PT_HPU_RECIPE_CACHE_CONFIG",
                                        "/var/cache/cachewarm/gaudi,false,16384"}));
}

TEST(CacheTable, SelectsOnlyTheNamedPresets) {
  const auto table = CacheTable::Make({{.name = "triton"}, {.name = "triton"}});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(table->Env(),
              ElementsAre(api::EnvVar{"TRITON_CACHE_DIR", "/var/cache/cachewarm/triton"}));
  EXPECT_TRUE(table->Classify("triton/ABC/k.cubin").carried());
  EXPECT_EQ(table->Classify("inductor/ab/cab.py").skip, Skip::kUnknownCache);
}

TEST(CacheTable, RefusesUnsafePaths) {
  const std::string deep = [] {
    std::string path = "inductor";
    for (int i = 0; i < 32; ++i) {
      path += "/d";
    }
    return path;
  }();
  const std::string long_name = "triton/ABC/" + std::string(1024, 'k') + ".cubin";
  for (const std::string& path :
       {std::string(), std::string("/inductor/ab/cab.py"), std::string("inductor/../x"),
        std::string("inductor/./x"), std::string("inductor//x"), std::string("inductor/"),
        std::string("inductor/ab/c\0b.py", 18), std::string("inductor/ab/c\xff.py"), deep,
        long_name, std::string("..")}) {
    EXPECT_EQ(CacheTable::AllPresets().Classify(path).skip, Skip::kUnsafePath) << path;
  }
}

TEST(CacheTable, ClassifiesPathsUpToTheLongestAndDeepest) {
  std::string deep = "inductor";
  for (int i = 0; i < 31; ++i) {
    deep += "/d";
  }
  EXPECT_NE(CacheTable::AllPresets().Classify(deep).skip, Skip::kUnsafePath);
  const std::string prefix = "triton/ABC/";
  const std::string longest = prefix + std::string(1024 - prefix.size(), 'k');
  EXPECT_NE(CacheTable::AllPresets().Classify(longest).skip, Skip::kUnsafePath);
  EXPECT_EQ(CacheTable::AllPresets().Classify(longest + "k").skip, Skip::kUnsafePath);
}

TEST(CacheTable, CarriesNamesInAnyAlphabet) {
  EXPECT_TRUE(CacheTable::AllPresets().Classify("torch_extensions/größe/核.so").carried());
}

TEST(SkipName, DiffersForEveryReason) {
  std::set<std::string_view> names;
  for (Skip skip : {Skip::kNo, Skip::kUnknownCache, Skip::kNotAllowed, Skip::kLock,
                    Skip::kTemporary, Skip::kLog, Skip::kPrivate, Skip::kUnsafePath}) {
    EXPECT_FALSE(SkipName(skip).empty());
    names.insert(SkipName(skip));
  }
  EXPECT_EQ(names.size(), 8U);
}

}  // namespace
}  // namespace cachewarm::caches
