// SPDX-License-Identifier: Apache-2.0
#include "operator/render/gate_release.h"

#include <gtest/gtest.h>

#include "lib/api/kubernetes.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/patch.h"
#include "operator/render/affinity.h"

namespace cachewarm::render {
namespace {

using codec::Json;

Json Parse(const std::string& text) {
  return codec::ParseJson(text).value();
}

// ---- affinity -----------------------------------------------------------------------------------

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

// ---- gate release -------------------------------------------------------------------------------

api::Pod HeldPod(const std::string& extra = "") {
  const std::string text =
      R"({"metadata":{"name":"p","namespace":"models","uid":"u1",)"
      R"("annotations":{"cachewarm.io/warmup":"llama"}},)"
      R"("spec":{"schedulingGates":[{"name":"other"},{"name":"cachewarm.io/wait-for-cache"}])" +
      extra + "}}";
  return api::DecodePod(std::make_shared<const Json>(Parse(text))).value();
}

TEST(GateRelease, TestsPodAndGateBeforeRemoval) {
  const api::Pod pod = HeldPod();
  const Json patch =
      GateReleasePatch({.pod = pod, .reason = "ReleasedWarm", .held_seconds = 3.2}).value();
  EXPECT_EQ(patch, Parse(R"([
    {"op":"test","path":"/metadata/uid","value":"u1"},
    {"op":"test","path":"/spec/schedulingGates/1/name","value":"cachewarm.io/wait-for-cache"},
    {"op":"remove","path":"/spec/schedulingGates/1"},
    {"op":"add","path":"/metadata/annotations/cachewarm.io~1released","value":"ReleasedWarm"},
    {"op":"add","path":"/metadata/annotations/cachewarm.io~1held-seconds","value":"3.200"}])"));
}

TEST(GateRelease, MergesAffinityInTheSamePatch) {
  const api::Pod pod = HeldPod(R"(,"affinity":{"podAffinity":{"x":1}})");
  const Json patch =
      GateReleasePatch({.pod = pod, .reason = "ReleasedForBuild", .hosts = {.preferred = {"n1"}}})
          .value();
  const Json& last = patch.back();
  EXPECT_EQ(last["path"], "/spec/affinity");
  EXPECT_EQ(last["value"]["podAffinity"]["x"], 1);
  EXPECT_TRUE(last["value"].contains("nodeAffinity"));
}

TEST(GateRelease, TestsAffinityBeforeReplacingIt) {
  const api::Pod pod = HeldPod(R"(,"affinity":{"podAffinity":{"x":1}})");
  const Json patch =
      GateReleasePatch({.pod = pod, .reason = "ReleasedWarm", .hosts = {.excluded = {"n9"}}})
          .value();
  const Json test = {
      {"op", "test"}, {"path", "/spec/affinity"}, {"value", {{"podAffinity", {{"x", 1}}}}}};
  EXPECT_EQ(patch[patch.size() - 2], test);
  EXPECT_EQ(patch.back()["op"], "add");
  const Json bare = gate::WithoutAnnotations(patch);
  EXPECT_EQ(bare.size(), patch.size() - 2);
  EXPECT_EQ(bare[bare.size() - 2], test) << "tested with the release, not with its annotations";
}

TEST(GateRelease, TestsThatPodHasNoAffinity) {
  const api::Pod pod = HeldPod();
  const Json patch =
      GateReleasePatch({.pod = pod, .reason = "ReleasedWarm", .hosts = {.preferred = {"n1"}}})
          .value();
  const Json& test = patch[patch.size() - 2];
  EXPECT_EQ(test["path"], "/spec/affinity");
  ASSERT_TRUE(test.contains("value"));
  EXPECT_TRUE(test["value"].is_null());
}

TEST(GateRelease, OmitsUnchangedAffinity) {
  const HostRules rules{.preferred = {"n1"}};
  api::Pod pod = HeldPod();
  Json object = *pod.object;
  object["spec"]["affinity"] = WithHostRules(Json(), rules);
  pod = api::DecodePod(std::make_shared<const Json>(object)).value();
  const Json patch =
      GateReleasePatch({.pod = pod, .reason = "ReleasedWarm", .hosts = rules}).value();
  EXPECT_EQ(patch, GateReleasePatch({.pod = pod, .reason = "ReleasedWarm"}).value());
  EXPECT_EQ(patch.dump().find("affinity"), std::string::npos);
}

TEST(GateRelease, FailsIfAffinityChanged) {
  const api::Pod pod = HeldPod(R"(,"affinity":{"podAffinity":{"x":1}})");
  const Json patch =
      GateReleasePatch({.pod = pod, .reason = "ReleasedWarm", .hosts = {.preferred = {"n1"}}})
          .value();
  Json changed = *pod.object;
  changed["spec"]["affinity"]["nodeAffinity"] = Json::object();
  EXPECT_THROW(changed.patch(patch), Json::exception);
}

TEST(GateRelease, AppliedPatchReleasesThePod) {
  const api::Pod pod = HeldPod(R"(,"affinity":{"podAffinity":{"x":1}})");
  const Json patch = GateReleasePatch({.pod = pod,
                                       .reason = "ReleasedWarm",
                                       .hosts = {.excluded = {"bad"}, .preferred = {"n1"}}})
                         .value();
  const Json after = pod.object->patch(patch);
  EXPECT_EQ(after["spec"]["schedulingGates"], Parse(R"([{"name":"other"}])"));
  EXPECT_EQ(after["metadata"]["annotations"]["cachewarm.io/warmup"], "llama");
  EXPECT_EQ(Terms(after["spec"]["affinity"]).size(), 1U);
  EXPECT_EQ(after["spec"]["affinity"]["podAffinity"]["x"], 1);
}

TEST(GateRelease, FailsOnReplacedPod) {
  const api::Pod pod = HeldPod();
  const Json patch = GateReleasePatch({.pod = pod, .reason = "ReleasedWarm"}).value();
  Json other = *pod.object;
  other["metadata"]["uid"] = "u2";
  EXPECT_THROW(other.patch(patch), Json::exception);
}

TEST(GateRelease, UngatedPodHasNoPatch) {
  api::Pod pod = HeldPod();
  pod.gates = {"other"};
  EXPECT_TRUE(absl::IsNotFound(GateReleasePatch({.pod = pod, .reason = "ReleasedWarm"}).status()));
}

TEST(GateRelease, WorksWithoutAnnotations) {
  api::Pod pod = HeldPod();
  pod.meta.annotations = {};
  EXPECT_EQ(GateReleasePatch({.pod = pod, .reason = "ReleasedWarm"}).value().size(), 3U);
}

}  // namespace
}  // namespace cachewarm::render
