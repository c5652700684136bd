// SPDX-License-Identifier: Apache-2.0
#include "operator/factors/cause.h"

#include <gtest/gtest.h>

#include "fmt/format.h"

namespace cachewarm::factors {
namespace {

using api::StartResult;

StartFactors Factors() {
  return {
      {"salt", "1"},         {"rules", "1"},          {"node", "node-a"},
      {"image", "server:1"}, {"gpuType", "cpu"},      {"cpuClass", "x86-64-v4/amd-25-17/00000001"},
      {"devices", "0"},      {"container", "server"}, {"env/VLLM_A", "h:1"}};
}

api::BundleStatus Bundle(const StartFactors& factors = Factors()) {
  return {.gpu_type = "cpu",
          .cpu_class = "x86-64-v4/amd-25-17/00000001",
          .image = "server:1",
          .digest = Digest::FromHex(std::string(64, 'a')),
          .native = true,
          .builder_pod = "llama-0",
          .factors = Encode(factors)};
}

ExplainedStart Miss(const api::BundleStatus& bundle, StartFactors factors) {
  return {.result = StartResult::kMiss,
          .node = "node-a",
          .factors = std::move(factors),
          .bundle = &bundle,
          .serves = true,
          .was_active = true};
}

TEST(Cause, TextSaysWhatDiffersWhyAndWhatToDo) {
  const api::BundleStatus bundle = Bundle();
  StartFactors pod = Factors();
  pod["env/VLLM_A"] = "h:2";
  pod["args/--dtype"] = "h:3";
  EXPECT_EQ(FindCause(Miss(bundle, pod))->text,
            "environment variable VLLM_A differs from that of builder pod llama-0: vLLM hashes "
            "every VLLM_* variable that it does not ignore into its key. Set the same value in all "
            "pods of the workload. Other differences: argument --dtype.");
}

TEST(Cause, ValueOfEachPodIsNamed) {
  StartFactors factors = Factors();
  factors["env/VLLM_A"] = "pod:status.podIP";
  const api::BundleStatus bundle = Bundle(factors);
  const auto cause = FindCause(Miss(bundle, factors));
  EXPECT_EQ(cause->factor, "env/VLLM_A");
  EXPECT_TRUE(
      cause->text.starts_with("environment variable VLLM_A contains status.podIP, which is "
                              "different in every pod: "))
      << cause->text;
}

TEST(Cause, BundleWithoutFactorsIsNotGuessedAbout) {
  const api::BundleStatus bundle = Bundle({});
  const auto cause = FindCause(Miss(bundle, Factors()));
  EXPECT_EQ(cause->factor, "");
  EXPECT_NE(cause->text.find("records no factors of its builder"), std::string::npos);
}

TEST(Cause, NoDifferenceIsSaid) {
  const api::BundleStatus bundle = Bundle();
  const auto cause = FindCause(Miss(bundle, Factors()));
  EXPECT_EQ(cause->factor, "");
  EXPECT_TRUE(cause->text.starts_with("no recorded factor differs from builder pod llama-0"));
}

TEST(Cause, ReplacedSaltIsSaid) {
  StartFactors old = Factors();
  old["salt"] = "0";
  old["env/VLLM_A"] = "h:9";
  const api::BundleStatus bundle = Bundle(old);
  const auto cause = FindCause(Miss(bundle, Factors()));
  EXPECT_EQ(cause->factor, "");
  EXPECT_NE(cause->text.find("salt of their hashes was replaced"), std::string::npos);
}

TEST(Cause, HitAndUnknownStartHaveNone) {
  const api::BundleStatus bundle = Bundle();
  for (const StartResult result : {StartResult::kHit, StartResult::kUnknown}) {
    ExplainedStart start = Miss(bundle, Factors());
    start.result = result;
    EXPECT_FALSE(FindCause(start).has_value());
  }
}

TEST(Cause, ColdStartBeforeTheBundleWasActiveBlamesNoFactor) {
  const api::BundleStatus bundle = Bundle();
  StartFactors pod = Factors();
  pod["env/VLLM_A"] = "h:2";
  ExplainedStart start = Miss(bundle, pod);
  start.result = StartResult::kCold;
  start.was_active = false;
  const auto cause = FindCause(start);
  EXPECT_EQ(cause->factor, "");
  EXPECT_TRUE(cause->text.starts_with("bundle aaaaaaaaaaaa was not active on node node-a"));
}

TEST(Cause, FirstBuilderHasNone) {
  EXPECT_FALSE(FindCause({.result = StartResult::kBuilder}).has_value());
  const api::BundleStatus bundle = Bundle();
  ExplainedStart again = Miss(bundle, Factors());
  again.result = StartResult::kBuilder;
  EXPECT_FALSE(FindCause(again).has_value()) << "it builds the key again";
  const auto cold = FindCause({.result = StartResult::kCold});
  EXPECT_TRUE(cold->text.starts_with("no bundle was published"));
}

TEST(Cause, StartOfAnotherKeyNamesTheFactorOfTheKey) {
  const api::BundleStatus bundle = Bundle();
  struct Row {
    const char* factor;
    const char* value;
  };
  for (const Row& row :
       {Row{"image", "server:2"}, Row{"gpuType", "nvidia/l4/sm_89"}, Row{"devices", "8"},
        Row{"container", "engine"}, Row{"cpuClass", "x86-64-v3/amd-23-49/00000002"}}) {
    StartFactors pod = Factors();
    pod[row.factor] = row.value;
    pod["env/VLLM_A"] = "h:2";
    for (const StartResult result : {StartResult::kCold, StartResult::kBuilder}) {
      const auto cause =
          FindCause({.result = result, .node = "node-a", .factors = pod, .bundle = &bundle});
      EXPECT_EQ(cause->factor, row.factor) << cause->text;
      EXPECT_NE(cause->text.find(row.value), std::string::npos) << cause->text;
    }
  }
}

TEST(Cause, OldBundleStillNamesImageAndGpuType) {
  const api::BundleStatus bundle = Bundle({});
  StartFactors pod = Factors();
  pod["image"] = "server:2";
  const auto cause = FindCause({.result = StartResult::kCold, .factors = pod, .bundle = &bundle});
  EXPECT_EQ(cause->factor, "image");
}

TEST(Cause, CpuClassIsNotBlamedForABundleWithoutNativeCode) {
  api::BundleStatus bundle = Bundle();
  bundle.native = false;
  StartFactors pod = Factors();
  pod["cpuClass"] = "x86-64-v3/amd-23-49/00000002";
  EXPECT_EQ(FindCause(Miss(bundle, pod))->factor, "");
  bundle.native = true;
  EXPECT_EQ(FindCause(Miss(bundle, pod))->factor, "cpuClass");
}

TEST(Cause, LongTextIsCut) {
  StartFactors pod = Factors();
  for (char c = 'a'; c <= 'z'; ++c) {
    pod["env/VLLM_" + std::string(110, c)] = "h:2";
  }
  const api::BundleStatus bundle = Bundle();
  EXPECT_LE(FindCause(Miss(bundle, pod))->text.size(), kCauseBytesMax);
}

TEST(Cause, VariableOfVllmsKeyPrecedesADifferenceOfThePods) {
  const api::BundleStatus bundle = Bundle();
  StartFactors pod = Factors();
  pod["args/--dtype"] = "h:3";
  pod["env/VLLM_A"] = "h:2";
  ExplainedStart start = Miss(bundle, pod);
  start.engine_factors = {"env.VLLM_USE_V1", "env.VLLM_X", "config_hash"};
  const auto cause = FindCause(start);
  EXPECT_EQ(cause->factor, "engine/env.VLLM_USE_V1");
  EXPECT_EQ(cause->text,
            "vLLM's key factor env.VLLM_USE_V1 differs from that of builder pod llama-0: vLLM "
            "reports in cache_key_factors.json that it is part of the key. Set the same value in "
            "all pods of the workload; it may come from a ConfigMap, a Secret, the image or a "
            "start script. Other differences: env.VLLM_X.");
}

TEST(Cause, HashInVllmsKeyIsNamedOnlyIfThePodsAreEqual) {
  const api::BundleStatus bundle = Bundle();
  StartFactors pod = Factors();
  pod["args/--dtype"] = "h:3";
  ExplainedStart start = Miss(bundle, pod);
  start.engine_factors = {"config_hash"};
  EXPECT_EQ(FindCause(start)->factor, "args/--dtype");
  start.factors = Factors();
  for (const char* part : {"config_hash", "code_hash", "compiler_hash"}) {
    start.engine_factors = {part};
    const auto cause = FindCause(start);
    EXPECT_EQ(cause->factor, fmt::format("engine/{}", part));
    EXPECT_TRUE(cause->text.starts_with(fmt::format("vLLM's key factor {} differs from", part)))
        << cause->text;
  }
}

TEST(Cause, VariableThatVllmsKeyDoesNotNameIsNotBlamed) {
  const api::BundleStatus bundle = Bundle();
  StartFactors pod = Factors();
  pod["env/VLLM_A"] = "h:2";
  ExplainedStart start = Miss(bundle, pod);
  start.engine_factors = {"code_hash"};
  EXPECT_EQ(FindCause(start)->factor, "engine/code_hash");
}

TEST(Cause, VllmsKeyExplainsABundleWithoutFactors) {
  const api::BundleStatus bundle = Bundle({});
  ExplainedStart start = Miss(bundle, Factors());
  start.engine_factors = {"env.VLLM_USE_V1"};
  EXPECT_EQ(FindCause(start)->factor, "engine/env.VLLM_USE_V1");
}

TEST(ClosestBundle, DiffersInTheFewestFactorsOfTheKey) {
  std::vector<api::BundleStatus> bundles = {Bundle(), Bundle(), Bundle()};
  bundles[0].image = "server:0";
  bundles[0].gpu_type = "nvidia/l4/sm_89";
  bundles[1].image = "server:0";
  bundles[1].published_time = WallTime(Duration(1'000));
  bundles[2].image = "server:9";
  bundles[2].published_time = WallTime(Duration(2'000));
  EXPECT_EQ(ClosestBundle(bundles, Factors()), &bundles[2]) << "the newest of equal ones";
  EXPECT_EQ(ClosestBundle({}, Factors()), nullptr);
}

}  // namespace
}  // namespace cachewarm::factors
