// SPDX-License-Identifier: Apache-2.0
#include "operator/factors/relevance.h"

#include <gtest/gtest.h>

namespace cachewarm::factors {
namespace {

struct Row {
  std::string_view name;
  Relevance relevance;
  bool is_per_pod = false;
};

TEST(Relevance, FollowsTheKeysOfEngines) {
  constexpr Row kRows[] = {
      {"env/VLLM_USE_V1", Relevance::kKey},
      {"env/VLLM_HOST_IP", Relevance::kNone},
      {"env/VLLM_LOGGING_LEVEL", Relevance::kNone},
      {"env/VLLM_CACHE_ROOT", Relevance::kLikely},
      {"env/VLLM_NIXL_SIDE_CHANNEL_HOST", Relevance::kKey, true},
      {"env/TORCHINDUCTOR_CACHE_DIR", Relevance::kLikely},
      {"env/TORCHINDUCTOR_MAX_AUTOTUNE", Relevance::kKey},
      {"env/TRITON_DEFAULT_FP_FUSION", Relevance::kKey},
      {"env/XLA_FLAGS", Relevance::kKey},
      {"env/HOME", Relevance::kLikely},
      {"env/LD_LIBRARY_PATH", Relevance::kLikely},
      {"env/CUDA_VISIBLE_DEVICES", Relevance::kNone},
      {"env/APP_MODE", Relevance::kPossible},
      {"env/APP_MODE", Relevance::kNone, true},
      {"env/DB_LOG_LEVEL", Relevance::kNone},
      {"env/MODEL_ID", Relevance::kLikely},
      {"args/--model", Relevance::kLikely},
      {"args/--max-model-len", Relevance::kLikely},
      {"args/--id", Relevance::kPossible, true},
      {"args/--port", Relevance::kNone},
      {"args/--ssl-keyfile", Relevance::kNone},
      {"args/4", Relevance::kLikely},
      {"image", Relevance::kKey},
      {"imageID", Relevance::kPossible},
      {"driver", Relevance::kPossible},
      {"salt", Relevance::kNone},
  };
  for (const Row& row : kRows) {
    const Knowledge known = KnowledgeOf(row.name, row.is_per_pod);
    EXPECT_EQ(known.relevance, row.relevance) << row.name;
    EXPECT_FALSE(known.effect.empty()) << row.name;
    EXPECT_FALSE(known.remedy.empty()) << row.name;
    EXPECT_FALSE(known.remedy.ends_with('.')) << row.name;
  }
}

TEST(Relevance, DirectoriesAreMarked) {
  EXPECT_TRUE(KnowledgeOf("env/TRITON_CACHE_DIR", false).selects_directory);
  EXPECT_TRUE(KnowledgeOf("env/XDG_CACHE_HOME", false).selects_directory);
  EXPECT_FALSE(KnowledgeOf("env/VLLM_USE_V1", false).selects_directory);
}

TEST(Relevance, FactorsHaveNamesForUsers) {
  EXPECT_EQ(DescribeFactor("env/HOME"), "environment variable HOME");
  EXPECT_EQ(DescribeFactor("args/--model"), "argument --model");
  EXPECT_EQ(DescribeFactor("args/3"), "word 3 of command and args");
  EXPECT_EQ(DescribeFactor("gpuType"), "GPU type");
  EXPECT_EQ(DescribeFactor("image"), "image");
}

}  // namespace
}  // namespace cachewarm::factors
