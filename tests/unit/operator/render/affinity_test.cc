// SPDX-License-Identifier: Apache-2.0
#include "operator/render/affinity.h"

#include <gtest/gtest.h>

#include "lib/api/kubernetes.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::render {
namespace {

using codec::Json;

Json Parse(const std::string& text) {
  return codec::ParseJson(text).value();
}

Json Terms(const Json& affinity) {
  return affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                 ["nodeSelectorTerms"];
}

TEST(Affinity, RequirementIsAddedToEveryTerm) {
  const Json users = Parse(R"({"nodeAffinity":{
    "requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
      {"matchExpressions":[{"key":"pool","operator":"In","values":["a"]}]},
      {"matchExpressions":[{"key":"pool","operator":"In","values":["b"]}]}]}},
    "podAntiAffinity":{"x":1}})");
  const Json out = WithHostRules(users, {.excluded = {"bad"}});
  ASSERT_EQ(Terms(out).size(), 2U);
  for (const Json& term : Terms(out)) {
    EXPECT_EQ(term["matchExpressions"].size(), 2U);
    EXPECT_EQ(term["matchExpressions"][1]["operator"], "NotIn");
    EXPECT_EQ(term["matchExpressions"][1]["values"], Json::array({"bad"}));
  }
  EXPECT_EQ(out["podAntiAffinity"], users["podAntiAffinity"]);
}

TEST(Affinity, InvalidTermIsLeftToTheApiServer) {
  const Json users = Parse(R"({"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{
      "nodeSelectorTerms":["x",{}]}}})");
  const Json terms = WithHostRules(
      users, {.required = {"n1"}})["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                                  ["nodeSelectorTerms"];
  EXPECT_EQ(terms[0], "x");
  EXPECT_EQ(terms[1]["matchExpressions"].size(), 1U);
}

TEST(Affinity, PreferenceIsAddedWithLowWeight) {
  const Json users = Parse(R"({"nodeAffinity":{
    "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":50,"preference":{}}]}})");
  const Json out = WithHostRules(users, {.preferred = {"n1", "n2"}});
  const Json& list = out["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0]["weight"], 50);
  EXPECT_EQ(list[1]["weight"], 10);
  EXPECT_EQ(list[1]["preference"]["matchExpressions"][0]["values"], Json::array({"n1", "n2"}));
  EXPECT_FALSE(out["nodeAffinity"].contains("requiredDuringSchedulingIgnoredDuringExecution"));
}

TEST(Affinity, AddingRulesIsIdempotent) {
  const HostRules rules{.required = {"n1"}, .excluded = {"bad"}, .preferred = {"n2"}};
  const Json once = WithHostRules(Json(), rules);
  EXPECT_EQ(WithHostRules(once, rules), once);
}

TEST(Affinity, NoRulesChangeNothing) {
  EXPECT_EQ(WithHostRules(Parse(R"({"a":1})"), {}), Parse(R"({"a":1})"));
}

TEST(Affinity, ListsAreTruncated) {
  const std::vector<std::string> many(1'100, "n");
  const Json out = WithHostRules(Json(), {.excluded = many, .preferred = many});
  EXPECT_EQ(Terms(out)[0]["matchExpressions"][0]["values"].size(), 1'000U);
  const Json& preferred =
      out["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["preference"];
  EXPECT_EQ(preferred["matchExpressions"][0]["values"].size(), 64U);
}

TEST(Affinity, RulesAreAddedToTheAffinityOfAPod) {
  const auto with = [](const std::string& spec) {
    const std::string text = R"({"metadata":{"name":"p","namespace":"models","uid":"u1"},"spec":)";
    return WithHostRules(
        api::DecodePod(std::make_shared<const Json>(Parse(text + spec + "}"))).value(),
        {.excluded = {"bad"}});
  };
  EXPECT_EQ(Terms(with("{}")).size(), 1U);
  const Json out = with(R"({"affinity":{"podAffinity":{"x":1}}})");
  EXPECT_EQ(Terms(out).size(), 1U);
  EXPECT_EQ(out["podAffinity"]["x"], 1);
}

}  // namespace
}  // namespace cachewarm::render
