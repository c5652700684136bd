// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/engine_factors.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "fmt/format.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::capture {
namespace {

const std::string kSalt(32, 's');
constexpr char kPart[] = "rank_0_0/backbone";
constexpr char kKeyDirectory[] = "vllm/torch_compile_cache/4a1f0c9b7e";
// As vLLM 0.32 writes it (compilation/backends.py), shortened.
constexpr std::string_view kVllm = R"({
  "code_hash": "a30c4d2f6f3b0f2fd0f7c5b8a9f0a1f4e9f6f5d5c1f3e6a7b8c9d0e1f2a3b4c5",
  "compiler_hash": "bc0d1f9a3e",
  "config_hash": "1f0a6b7c2d",
  "env": {
    "CUDA_HOME": null,
    "Q_SCALE_CONSTANT": 200,
    "VERBOSE": false,
    "VLLM_DISABLED_KERNELS": [],
    "VLLM_FLOAT32_MATMUL_PRECISION": "highest",
    "VLLM_ROCM_QUICK_REDUCE_QUANTIZATION": ["vllm.Quant", "NONE"],
    "VLLM_USE_AOT_COMPILE": true
  }
})";

std::string Replaced(std::string_view from, std::string_view to) {
  std::string text(kVllm);
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(EngineFactors, EveryLeafIsHashedUnderItsName) {
  const auto factors = HashEngineFactors(kVllm, kPart, kSalt);
  ASSERT_TRUE(factors.ok()) << factors.status();
  std::vector<std::string> names;
  for (const auto& [name, hash] : *factors) {
    names.push_back(name);
    EXPECT_EQ(hash.size(), name == kEngineSaltFactor || name == kEnginePartFactor ? 8U : 16U)
        << name;
    EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos) << name;
  }
  EXPECT_EQ(
      names,
      (std::vector<std::string>{
          "code_hash", "compiler_hash", "config_hash", "env.CUDA_HOME", "env.Q_SCALE_CONSTANT",
          "env.VERBOSE", "env.VLLM_DISABLED_KERNELS", "env.VLLM_FLOAT32_MATMUL_PRECISION",
          "env.VLLM_ROCM_QUICK_REDUCE_QUANTIZATION", "env.VLLM_USE_AOT_COMPILE", "part", "salt"}));
}

TEST(EngineFactors, HashDependsOnSaltNameAndValue) {
  const auto one = HashEngineFactors(R"({"a": "x", "b": "x", "c": "y"})", kPart, kSalt);
  const auto other = HashEngineFactors(R"({"a": "x"})", kPart, std::string(32, 't'));
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE(one->at("a"), one->at("b"));
  EXPECT_NE(one->at("b"), one->at("c"));
  EXPECT_NE(one->at("a"), other->at("a"));
  EXPECT_NE(one->at("salt"), other->at("salt"));
}

TEST(EngineFactors, DifferenceIsNamedWithVariablesFirst) {
  const auto builder = HashEngineFactors(kVllm, kPart, kSalt);
  const auto start = HashEngineFactors(Replaced("\"VLLM_USE_AOT_COMPILE\": true",
                                                "\"VLLM_USE_AOT_COMPILE\": false, \"VLLM_NEW\": 1"),
                                       kPart, kSalt);
  const auto configured = HashEngineFactors(Replaced("1f0a6b7c2d", "2f0a6b7c2d"), kPart, kSalt);
  ASSERT_TRUE(builder.ok() && start.ok() && configured.ok());
  EXPECT_EQ(DifferingFactors(*builder, *start),
            (std::vector<std::string>{"env.VLLM_NEW", "env.VLLM_USE_AOT_COMPILE"}));
  EXPECT_EQ(DifferingFactors(*start, *configured),
            (std::vector<std::string>{"env.VLLM_NEW", "env.VLLM_USE_AOT_COMPILE", "config_hash"}));
  EXPECT_TRUE(DifferingFactors(*builder, *builder).empty());
}

TEST(EngineFactors, FactorsOfTwoSaltsAndOfOneSideAreNotCompared) {
  const auto builder = HashEngineFactors(kVllm, kPart, kSalt);
  const auto start = HashEngineFactors(kVllm, kPart, std::string(32, 't'));
  ASSERT_TRUE(builder.ok() && start.ok());
  EXPECT_TRUE(DifferingFactors(*builder, *start).empty());
  EXPECT_TRUE(DifferingFactors(*builder, {}).empty());
  EXPECT_TRUE(DifferingFactors({}, *start).empty());
}

TEST(EngineFactors, FactorsOfDifferentPartsAreNotCompared) {
  const auto builder = HashEngineFactors(R"({"config_hash": "a"})", kPart, kSalt);
  const auto draft = HashEngineFactors(R"({"config_hash": "b"})", "rank_0_0/eagle_head", kSalt);
  ASSERT_TRUE(builder.ok() && draft.ok());
  EXPECT_TRUE(DifferingFactors(*builder, *draft).empty());
  EngineFactors older = *builder;  // of a bundle without the id of its part
  older.erase(std::string(kEnginePartFactor));
  EXPECT_TRUE(DifferingFactors(older, *draft).empty());
}

TEST(EngineFactors, NumberOfNamedDifferencesIsLimited) {
  std::string text = "{\"first\": 0";
  for (int i = 0; i < 20; ++i) {
    text += fmt::format(",\"f{}\":{}", i, i);
  }
  const auto many = HashEngineFactors(text + "}", kPart, kSalt);
  const auto few = HashEngineFactors("{\"first\": 0}", kPart, kSalt);
  ASSERT_TRUE(many.ok() && few.ok());
  EXPECT_EQ(DifferingFactors(*many, *few).size(), kDifferingFactorsMax);
}

TEST(EngineFactors, UntrustedTextIsRefusedWithoutQuotingIt) {
  std::string too_many = "{\"f\": 0";
  for (size_t i = 0; i < kEngineFactorsMax; ++i) {
    too_many += fmt::format(",\"f{}\":0", i);
  }
  const std::vector<std::string> refused = {
      "",
      "sk-secret",
      "[\"sk-secret\"]",
      "{\"env\": {\"A\": \"sk-secret\"}",
      "{\"sk-secret and blanks\": 1}",
      "{\"sk-secret\\n\": 1}",
      "{\"\": \"sk-secret\"}",
      "{\"salt\": \"sk-secret\"}",
      "{\"part\": \"sk-secret\"}",
      "{\"a\": {\"b\": \"sk-secret\"}, \"a.b\": 1}",
      "{\"" + std::string(kEngineFactorNameBytes + 1, 'n') + "\": \"sk-secret\"}",
      "{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{\"f\":{\"g\":{\"h\":{\"i\":\"sk-secret\"}}}}}}}}}",
      "{\"a\": \"" + std::string(size_t{kEngineFactorsFileBytes}, 'x') + "\"}",
      too_many + "}"};
  for (const std::string& text : refused) {
    const auto factors = HashEngineFactors(text, kPart, kSalt);
    EXPECT_EQ(factors.status().code(), absl::StatusCode::kInvalidArgument)
        << text.substr(0, 80) << factors.status();
    EXPECT_EQ(factors.status().message().find("sk-secret"), std::string::npos) << factors.status();
  }
}

TEST(EngineFactors, ShortSaltIsRefused) {
  EXPECT_EQ(HashEngineFactors(kVllm, kPart, std::string(31, 's')).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

class EngineFactorsFile : public ::testing::Test {
 protected:
  // Writes a file whose only factor has this value and sets its mtime.
  void Write(const std::string& path, int value, int second) {
    scratch_.Write(path, fmt::format("{{\"value\": {}}}", value));
    ASSERT_TRUE(tree().Exists(path).value_or(false));
    Touch(path, second);
  }
  void Touch(const std::string& path, int second) {
    const auto time = std::chrono::file_clock::from_sys(kBegin + std::chrono::seconds(second));
    std::filesystem::last_write_time(std::filesystem::path(scratch_.path()) / path, time);
  }
  fs::Dir tree() const { return *fs::Dir::Open(scratch_.path()); }

  absl::StatusOr<EngineFactors> Read() {
    return ReadEngineFactors(tree(), kBegin, kBegin + std::chrono::seconds(100), kSalt,
                             [this](const std::string& path) { opened_ = path; });
  }
  static EngineFactors Of(int value) {
    return *HashEngineFactors(fmt::format("{{\"value\": {}}}", value), kPart, kSalt);
  }

  static constexpr WallTime kBegin{Duration(1'790'000'000'000)};
  const TempDir scratch_;
  std::string opened_;
};

TEST_F(EngineFactorsFile, FileOfTheFirstRankIsReadAndAnnounced) {
  const std::string first =
      fmt::format("{}/rank_0_0/backbone/cache_key_factors.json", kKeyDirectory);
  Write(fmt::format("{}/rank_1_0/backbone/cache_key_factors.json", kKeyDirectory), 2, 60);
  Write(first, 1, 50);
  const auto factors = Read();
  ASSERT_TRUE(factors.ok()) << factors.status();
  EXPECT_EQ(*factors, Of(1));
  EXPECT_EQ(opened_, first);
}

// A start that finds the code of the model but compiles that of its draft model.
TEST_F(EngineFactorsFile, AnotherPartThanThatOfTheBuilderIsNotComparedWithIt) {
  Write(fmt::format("{}/rank_0_0/backbone/cache_key_factors.json", kKeyDirectory), 1, -1);
  Write(fmt::format("{}/rank_0_0/eagle_head/cache_key_factors.json", kKeyDirectory), 2, 50);
  const auto factors = Read();
  ASSERT_TRUE(factors.ok()) << factors.status();
  EXPECT_EQ(factors->at("value"), Of(2).at("value"));
  EXPECT_TRUE(DifferingFactors(Of(1), *factors).empty());
}

TEST_F(EngineFactorsFile, OnlyFilesOfTheStartAreRead) {
  Write("vllm/torch_compile_cache/old/rank_0_0/backbone/cache_key_factors.json", 1, -1);
  Write("vllm/torch_compile_cache/late/rank_0_0/backbone/cache_key_factors.json", 2, 101);
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kNotFound);
  Write("vllm/torch_compile_cache/a/rank_0_0/backbone/cache_key_factors.json", 3, 90);
  Write("vllm/torch_compile_cache/b/rank_0_0/backbone/cache_key_factors.json", 4, 10);
  EXPECT_EQ(*Read(), Of(3)) << "the newest of one rank";
}

TEST_F(EngineFactorsFile, LinksAndFilesAtOtherPlacesAreNotRead) {
  Write("secret.json", 1, 50);
  Write("vllm/torch_compile_cache/cache_key_factors.json", 1, 50);
  Write(fmt::format("{}/rank_0_0/a/b/cache_key_factors.json", kKeyDirectory), 1, 50);
  Write(fmt::format("{}/inductor_cache/rank_0_0/a/cache_key_factors.json", kKeyDirectory), 1, 50);
  const auto part = std::filesystem::path(scratch_.path()) / kKeyDirectory / "rank_0_0/backbone";
  std::filesystem::create_directories(part);
  std::filesystem::create_symlink(std::filesystem::path(scratch_.path()) / "secret.json",
                                  part / "cache_key_factors.json");
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(EngineFactorsFile, TooLargeFileIsRefused) {
  const std::string path =
      fmt::format("{}/rank_0_0/backbone/cache_key_factors.json", kKeyDirectory);
  scratch_.Write(path, std::string(size_t{kEngineFactorsFileBytes} + 1, ' '));
  Touch(path, 50);
  EXPECT_FALSE(Read().ok());
  EXPECT_NE(Read().status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace cachewarm::capture
