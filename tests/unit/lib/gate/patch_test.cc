// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/core/patch.h"

#include <gtest/gtest.h>

#include <optional>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"
#include "tests/unit/lib/gate/held_pod.h"

namespace cachewarm::gate {
namespace {

using codec::Json;
using std::chrono::seconds;

TEST(ReleasePatch, RemovesOnlyTheGateOfCachewarm) {
  api::Pod pod = Held({"kueue.x-k8s.io/admission", std::string(api::kSchedulingGate), "other"});
  pod.meta.annotations = {{"cachewarm.io/warmup", "llama"}};
  ASSERT_TRUE(IsHeld(pod));
  const auto patch = ReleasePatch(pod, {.reason = "ReleasedManually", .held_seconds = 1.5});
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
  const auto patch = ReleasePatch(Held(), {.reason = "ReleasedManually"});
  ASSERT_TRUE(patch.ok());
  EXPECT_EQ(patch->size(), 3U);
}

TEST(ReleasePatch, IsNotFoundForPodsThatAreNotHeld) {
  const api::Pod pod = Held({"kueue.x-k8s.io/admission"});
  EXPECT_FALSE(IsHeld(pod));
  EXPECT_TRUE(absl::IsNotFound(ReleasePatch(pod, {}).status()));
}

TEST(WithoutAnnotations, KeepsTestsReleaseAndAffinity) {
  api::Pod pod = Held();
  pod.meta.annotations = {{"a", "b"}};
  Json patch = *ReleasePatch(pod, {.reason = "ReleasedManually", .held_seconds = 1});
  patch.push_back({{"op", "add"}, {"path", "/spec/affinity"}, {"value", Json::object()}});
  const Json bare = WithoutAnnotations(patch);
  ASSERT_EQ(bare.size(), 4U);
  EXPECT_EQ(bare[2]["op"], "remove");
  EXPECT_EQ(bare[3]["path"], "/spec/affinity");
  EXPECT_EQ(WithoutAnnotations(bare), bare);
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
