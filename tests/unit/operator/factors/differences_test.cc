// SPDX-License-Identifier: Apache-2.0
#include "operator/factors/differences.h"

#include <gtest/gtest.h>

namespace cachewarm::factors {
namespace {

StartFactors Base() {
  return {{"salt", "1"},      {"rules", "1"},          {"node", "node-a"},  {"env/VLLM_A", "h:1"},
          {"env/APP", "h:2"}, {"args/--dtype", "h:3"}, {"driver", "570.1"}, {"env/HOME", "h:4"}};
}

std::vector<std::string> Names(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const Difference& each : comparison.differences) {
    names.push_back(each.name);
  }
  return names;
}

TEST(Differences, EqualFactorsDoNotDiffer) {
  EXPECT_TRUE(Names(Differences(Base(), Base(), Usage::kRead)).empty());
}

TEST(Differences, KeyOfAnEngineComesFirst) {
  StartFactors pod = Base();
  for (auto& [name, value] : pod) {
    if (name != "salt" && name != "rules" && name != "node") {
      value += "x";
    }
  }
  EXPECT_EQ(
      Names(Differences(Base(), pod, Usage::kRead)),
      (std::vector<std::string>{"env/VLLM_A", "args/--dtype", "env/HOME", "driver", "env/APP"}));
  EXPECT_EQ(Names(Differences(Base(), pod, Usage::kUnread)).front(), "env/HOME")
      << "it selects the directory";
}

TEST(Differences, MissingFactorIsOfOneSide) {
  StartFactors pod = Base();
  pod.erase("env/VLLM_A");
  pod["env/VLLM_B"] = "h:9";
  const Comparison comparison = Differences(Base(), pod, Usage::kRead);
  ASSERT_EQ(comparison.differences.size(), 2U);
  EXPECT_EQ(comparison.differences[0].kind, DifferenceKind::kOnlyBuilder);
  EXPECT_EQ(comparison.differences[1].kind, DifferenceKind::kOnlyPod);
  EXPECT_EQ(comparison.differences[1].pod, "") << "a hash is not shown";
}

TEST(Differences, AbsenceSaysNothingWhereFactorsMayBeMissing) {
  for (const char* mark : {"cut", "rules"}) {
    StartFactors builder = Base();
    builder.erase("env/VLLM_A");
    builder[mark] = "0";
    EXPECT_TRUE(Names(Differences(builder, Base(), Usage::kRead)).empty()) << mark;
    builder["args/--dtype"] = "h:9";
    EXPECT_EQ(Names(Differences(builder, Base(), Usage::kRead)),
              std::vector<std::string>{"args/--dtype"});
  }
  StartFactors pod = Base();
  pod.erase("env/VLLM_A");
  pod["cut"] = "1";
  EXPECT_TRUE(Names(Differences(Base(), pod, Usage::kRead)).empty());
}

TEST(Differences, HashesOfAnotherSaltAreNotCompared) {
  StartFactors builder = Base();
  builder["salt"] = "2";
  builder["env/VLLM_A"] = "h:9";
  builder["driver"] = "560.2";
  const Comparison comparison = Differences(builder, Base(), Usage::kRead);
  EXPECT_TRUE(comparison.is_salt_changed);
  EXPECT_EQ(Names(comparison), std::vector<std::string>{"driver"});
}

TEST(Differences, ImageIdsAreComparedWhereTheyNameTheContent) {
  struct Row {
    const char* builder;
    const char* pod;
    const char* node;
    bool differs;
  };
  for (const Row& row :
       {Row{"sha256:1", "sha256:2", "node-a", true}, Row{"sha256:1", "sha256:2", "node-b", false},
        Row{"r/i@sha256:1", "r/i@sha256:2", "node-b", true},
        Row{"r/i@sha256:1", "sha256:2", "node-b", false},
        Row{"r/i@sha256:1", "r/i@sha256:1", "node-b", false}}) {
    StartFactors builder = Base();
    builder["imageID"] = row.builder;
    StartFactors pod = Base();
    pod["imageID"] = row.pod;
    pod["node"] = row.node;
    EXPECT_EQ(Names(Differences(builder, pod, Usage::kRead)).empty(), !row.differs)
        << row.builder << " " << row.pod << " " << row.node;
  }
}

TEST(Differences, UnknownFactOfTheNodeIsNoDifference) {
  StartFactors pod = Base();
  pod.erase("driver");
  EXPECT_TRUE(Names(Differences(Base(), pod, Usage::kRead)).empty());
  EXPECT_TRUE(Names(Differences(pod, Base(), Usage::kRead)).empty());
}

TEST(Differences, ValueOfEachPodAlwaysDiffers) {
  StartFactors both = Base();
  both["env/VLLM_A"] = "pod:status.podIP";
  const Comparison comparison = Differences(both, both, Usage::kRead);
  ASSERT_EQ(Names(comparison), std::vector<std::string>{"env/VLLM_A"});
  EXPECT_EQ(comparison.differences[0].kind, DifferenceKind::kPerPod);
}

TEST(Differences, ValueOfTheNodeDiffersOnAnotherNode) {
  StartFactors builder = Base();
  builder["env/VLLM_A"] = "node:spec.nodeName";
  StartFactors pod = builder;
  EXPECT_TRUE(Names(Differences(builder, pod, Usage::kRead)).empty());
  pod["node"] = "node-b";
  EXPECT_EQ(Names(Differences(builder, pod, Usage::kRead)), std::vector<std::string>{"env/VLLM_A"});
}

TEST(Differences, ArgumentOfEachPodComesAfterAnyChange) {
  StartFactors builder = Base();
  builder["args/--id"] = "pod:metadata.name";
  StartFactors pod = builder;
  pod["env/APP"] = "h:9";
  EXPECT_EQ(Names(Differences(builder, pod, Usage::kRead)),
            (std::vector<std::string>{"env/APP", "args/--id"}));
}

}  // namespace
}  // namespace cachewarm::factors
