// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/client/release.h"

#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"
#include "tests/unit/lib/gate/held_pod.h"

namespace cachewarm::gate {
namespace {

using codec::Json;

const Json kPodAffinity = {{"podAffinity", {{"x", 1}}}};

Json TestOf(const char* path, const Json& value) {
  return {{"op", "test"}, {"path", path}, {"value", value}};
}

// A held pod with an annotation and this affinity.
api::Pod HeldWith(const Json& affinity) {
  Json object = Json::parse(R"({"metadata":{"name":"p","namespace":"models","uid":"u1",
      "annotations":{"cachewarm.io/warmup":"llama"}},
      "spec":{"schedulingGates":[{"name":"cachewarm.io/wait-for-cache"}]}})");
  if (!affinity.is_null()) {
    object["spec"]["affinity"] = affinity;
  }
  return api::DecodePod(std::make_shared<const Json>(object)).value();
}

TEST(ReleasePatch, RemovesOnlyTheGateOfCachewarm) {
  api::Pod pod = Held({"kueue.x-k8s.io/admission", std::string(api::kSchedulingGate), "other"});
  pod.meta.annotations = {{"cachewarm.io/warmup", "llama"}};
  ASSERT_TRUE(IsHeld(pod));
  const auto patch = ReleasePatch({.pod = pod, .reason = "ReleasedManually", .held_seconds = 1.5});
  ASSERT_TRUE(patch.ok()) << patch.status();
  const Json expected = {{{"op", "test"}, {"path", "/metadata/uid"}, {"value", "u1"}},
                         {{"op", "test"},
                          {"path", "/spec/schedulingGates/1/name"},
                          {"value", "cachewarm.io/wait-for-cache"}},
                         {{"op", "remove"}, {"path", "/spec/schedulingGates/1"}},
                         {{"op", "add"},
                          {"path", "/metadata/annotations/cachewarm.io~1released"},
                          {"value", "ReleasedManually"}},
                         {{"op", "add"},
                          {"path", "/metadata/annotations/cachewarm.io~1held-seconds"},
                          {"value", "1.500"}}};
  EXPECT_EQ(*patch, expected) << patch->dump(1);
}

TEST(ReleasePatch, DoesNotDependOnAnnotations) {
  const api::Pod pod = Held();
  const auto patch = ReleasePatch({.pod = pod, .reason = "ReleasedManually"});
  ASSERT_TRUE(patch.ok());
  EXPECT_EQ(patch->size(), 3U);
}

TEST(ReleasePatch, IsNotFoundForPodsThatAreNotHeld) {
  const api::Pod pod = Held({"kueue.x-k8s.io/admission"});
  EXPECT_FALSE(IsHeld(pod));
  EXPECT_TRUE(absl::IsNotFound(ReleasePatch({.pod = pod}).status()));
}

TEST(ReleasePatch, WithoutAReasonKeepsTestsReleaseAndAffinity) {
  const api::Pod pod = HeldWith(kPodAffinity);
  const Json wanted = Json::object();
  const Json patch = *ReleasePatch({.pod = pod, .affinity = &wanted});
  ASSERT_EQ(patch.size(), 5U);
  EXPECT_EQ(patch[2]["op"], "remove");
  EXPECT_EQ(patch[3], TestOf("/spec/affinity", kPodAffinity)) << "tested with the release";
  EXPECT_EQ(patch[4]["path"], "/spec/affinity");
}

TEST(ReleasePatch, MergesAffinityInTheSamePatch) {
  const api::Pod pod = HeldWith(kPodAffinity);
  const Json wanted = {{"podAffinity", {{"x", 2}}}};
  const Json patch = *ReleasePatch({.pod = pod, .reason = "ReleasedWarm", .affinity = &wanted});
  ASSERT_EQ(patch.size(), 7U);
  EXPECT_EQ(patch[5], TestOf("/spec/affinity", kPodAffinity)) << "tested before it is replaced";
  const Json after = pod.object->patch(patch);
  EXPECT_TRUE(after["spec"]["schedulingGates"].empty());
  EXPECT_EQ(after["metadata"]["annotations"]["cachewarm.io/warmup"], "llama");
  EXPECT_EQ(after["spec"]["affinity"], wanted);
}

TEST(ReleasePatch, TestsThatPodHasNoAffinity) {
  const api::Pod pod = HeldWith(Json());
  const Json patch =
      *ReleasePatch({.pod = pod, .reason = "ReleasedWarm", .affinity = &kPodAffinity});
  const Json& test = patch[patch.size() - 2];
  EXPECT_EQ(test["path"], "/spec/affinity");
  ASSERT_TRUE(test.contains("value"));
  EXPECT_TRUE(test["value"].is_null());
}

TEST(ReleasePatch, OmitsUnchangedAffinity) {
  const Json none = Json::object();
  const api::Pod with = HeldWith(kPodAffinity);
  const api::Pod without = HeldWith(Json());
  for (const Json& patch : {*ReleasePatch({.pod = with, .affinity = &kPodAffinity}),
                            *ReleasePatch({.pod = without, .affinity = &none})}) {
    EXPECT_EQ(patch.dump().find("affinity"), std::string::npos);
  }
}

TEST(ReleasePatch, FailsIfAffinityChanged) {
  const api::Pod pod = HeldWith(kPodAffinity);
  const Json wanted = Json::object();
  const Json patch = *ReleasePatch({.pod = pod, .reason = "ReleasedWarm", .affinity = &wanted});
  Json changed = *pod.object;
  changed["spec"]["affinity"]["nodeAffinity"] = Json::object();
  EXPECT_THROW(changed.patch(patch), Json::exception);
}

TEST(ReleasePatch, FailsOnReplacedPod) {
  const api::Pod pod = HeldWith(Json());
  Json other = *pod.object;
  other["metadata"]["uid"] = "u2";
  EXPECT_THROW(other.patch(*ReleasePatch({.pod = pod, .reason = "ReleasedWarm"})), Json::exception);
}

TEST(AnnotationPatch, TestsThatThePodIsStillHeld) {
  const Json patch = *AnnotationPatch(Held({"other", std::string(api::kSchedulingGate)}),
                                      api::kHeldUntilAnnotation, "2026-11-21T08:01:00Z");
  EXPECT_EQ(patch, Json::parse(R"([
      {"op":"test","path":"/metadata/uid","value":"u1"},
      {"op":"test","path":"/spec/schedulingGates/1/name","value":"cachewarm.io/wait-for-cache"},
      {"op":"add","path":"/metadata/annotations/cachewarm.io~1held-until",
       "value":"2026-11-21T08:01:00Z"}])"));
  EXPECT_TRUE(absl::IsNotFound(AnnotationPatch(Held({"other"}), "a", "b").status()));
}

}  // namespace
}  // namespace cachewarm::gate
