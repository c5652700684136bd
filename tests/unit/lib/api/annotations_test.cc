// SPDX-License-Identifier: Apache-2.0
#include "lib/api/annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "lib/api/workload_kinds.h"
#include "tests/fakes/source_dir.h"
#include "tests/unit/lib/api/schema.h"

namespace cachewarm::api {
namespace {

using codec::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

AnnotatedSpec Read(const std::string& name, const std::string& value) {
  return ReadAnnotatedSpec({{"cachewarm.io/" + name, value}});
}

TEST(Annotations, EachSetsItsOneField) {
  const std::vector<std::tuple<std::string, std::string, Json>> cases = {
      {"gate", "Never", {{"gate", {{"mode", "Never"}}}}},
      {"max-hold-seconds", "15", {{"gate", {{"maxHoldSeconds", 15}}}}},
      {"hang-seconds", "900", {{"hangSeconds", 900}}},
      {"container", "server", {{"container", "server"}}},
      {"caches",
       "triton, vllm",
       {{"caches", Json::array({{{"name", "triton"}}, {{"name", "vllm"}}})}}},
      {"gpu-types",
       "cpu,nvidia/h100-80gb-hbm3/sm_90",
       {{"gpuTypes", {"cpu", "nvidia/h100-80gb-hbm3/sm_90"}}}},
      {"node-selector",
       "pool=serving,zone=",
       {{"nodeSelector", {{"pool", "serving"}, {"zone", ""}}}}},
      {"builder", "Job", {{"compile", {{"builder", "Job"}}}}},
      {"timeout-seconds", "60", {{"compile", {{"timeoutSeconds", 60}}}}},
      {"pending-seconds", "61", {{"compile", {{"pendingSeconds", 61}}}}},
      {"settle-seconds", " 2 ", {{"compile", {{"settleSeconds", 2}}}}},
      {"retain", "2", {{"retain", 2}}},
      {"backoff-limit", "0", {{"compile", {{"backoffLimit", 0}}}}},
      {"harvest", "true", {{"harvest", true}}},
      {"paused", "true", {{"paused", true}}}};
  EXPECT_EQ(cases.size(), SpecAnnotations().size()) << "a case for each";
  for (const auto& [name, value, spec] : cases) {
    const AnnotatedSpec annotated = Read(name, value);
    EXPECT_EQ(annotated.spec, spec) << name;
    EXPECT_THAT(annotated.problems, IsEmpty()) << name;
  }
}

TEST(Annotations, ExampleOfEachIsAccepted) {
  for (const SpecAnnotation& row : SpecAnnotations()) {
    const AnnotatedSpec annotated =
        ReadAnnotatedSpec({{std::string(row.name), std::string(row.example)}});
    EXPECT_THAT(annotated.problems, IsEmpty()) << row.name;
    EXPECT_FALSE(annotated.spec.empty()) << row.name;
  }
}

TEST(Annotations, SeveralAnnotationsMakeOneSpec) {
  const AnnotatedSpec annotated = ReadAnnotatedSpec({{"cachewarm.io/warm", "true"},
                                                     {"cachewarm.io/gate", "Hold"},
                                                     {"cachewarm.io/max-hold-seconds", "5"},
                                                     {"example.com/gate", "x"}});
  EXPECT_EQ(annotated.spec, Json({{"gate", {{"mode", "Hold"}, {"maxHoldSeconds", 5}}}}));
  EXPECT_THAT(annotated.problems, IsEmpty());
}

TEST(Annotations, InvalidValueIsNamedWithARemedy) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"gate", "Sometimes"},       {"gate", ""},
      {"max-hold-seconds", "-1"},  {"hang-seconds", "9"},
      {"hang-seconds", "86401"},   {"max-hold-seconds", "3601"},
      {"max-hold-seconds", "60s"}, {"max-hold-seconds", "99999999999999999999"},
      {"container", "Server"},     {"container", "../x"},
      {"caches", "triton,,vllm"},  {"caches", "Triton"},
      {"gpu-types", ","},          {"node-selector", "pool"},
      {"node-selector", "=x"},     {"builder", "job"},
      {"timeout-seconds", "0"},    {"harvest", "yes"},
      {"paused", "yes"},           {"settle-seconds", "601"},
      {"backoff-limit", "11"},     {"gpu-types", std::string(5000, 'a')}};
  for (const auto& [name, value] : cases) {
    const AnnotatedSpec annotated = Read(name, value);
    EXPECT_TRUE(annotated.spec.empty()) << name << "=" << value << " gave " << annotated.spec;
    ASSERT_EQ(annotated.problems.size(), 1U) << name << "=" << value;
    EXPECT_THAT(annotated.problems[0], HasSubstr("annotation cachewarm.io/" + name + ": \""));
    EXPECT_THAT(annotated.problems[0], HasSubstr("or remove it"));
    EXPECT_LT(annotated.problems[0].size(), 1000U);
  }
}

TEST(Annotations, UnknownAnnotationIsNamed) {
  const AnnotatedSpec annotated = Read("gates", "Never");
  EXPECT_TRUE(annotated.spec.empty());
  EXPECT_THAT(annotated.problems,
              ElementsAre(HasSubstr("annotation cachewarm.io/gates is unknown")));
  EXPECT_THAT(annotated.problems[0], HasSubstr("cachewarm.io/gate,"));
}

TEST(Annotations, NamesTheFirstProblemsAndCountsTheRest) {
  std::map<std::string, std::string> annotations;
  for (int i = 0; i < 10'000; ++i) {
    annotations["cachewarm.io/x" + std::to_string(i)] = "";
  }
  const AnnotatedSpec annotated = ReadAnnotatedSpec(annotations);
  ASSERT_EQ(annotated.problems.size(), 9U);
  EXPECT_EQ(annotated.problems.back(),
            "9992 more annotations with the prefix cachewarm.io/ are unknown or invalid");
}

TEST(Annotations, ValidAnnotationsAreReadBesideInvalidOnes) {
  const AnnotatedSpec annotated =
      ReadAnnotatedSpec({{"cachewarm.io/gate", "Never"}, {"cachewarm.io/settle-seconds", "x"}});
  EXPECT_EQ(annotated.spec, Json({{"gate", {{"mode", "Never"}}}}));
  EXPECT_EQ(annotated.problems.size(), 1U);
}

TEST(Annotations, DocumentHasARowForEach) {
  std::ifstream file(fakes::SourceDir() + "/docs/annotations.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const SpecAnnotation& row : SpecAnnotations()) {
    const std::string field =
        (row.section.empty() ? "" : std::string(row.section) + ".") + std::string(row.field);
    EXPECT_THAT(text.str(),
                HasSubstr("| `" + std::string(row.name) + "` | `spec." + field + "` |"));
  }
}

TEST(WorkloadKinds, MatchTheSchema) {
  const Json rules = LoadSchema("cachewarmups.yaml")["properties"]["spec"]["properties"]
                                                    ["workloadRef"]["x-kubernetes-validations"];
  std::string list;
  for (const SupportedKind& each : kWorkloadKinds) {
    list += (list.empty() ? "['" : ", ['") + std::string(each.api_version) + "', '" +
            std::string(each.kind) + "']";
  }
  EXPECT_EQ(rules[0]["rule"], "[self.apiVersion, self.kind] in [" + list + "]");
  for (const SupportedKind& each : kWorkloadKinds) {
    EXPECT_THAT(rules[0]["message"].get<std::string>(), HasSubstr(each.kind));
    EXPECT_THAT(rules[0]["messageExpression"].get<std::string>(), HasSubstr(each.api_version));
  }
}

}  // namespace
}  // namespace cachewarm::api
