// SPDX-License-Identifier: Apache-2.0
#include "lib/api/gate/release.h"

#include <gtest/gtest.h>

#include <optional>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api::gate {
namespace {

using codec::Json;
using std::chrono::seconds;

const WallTime kCreated = ParseTime("2026-11-21T08:00:00Z").value();

Pod Held(std::vector<std::string> gates = {std::string(kSchedulingGate)}) {
  Pod pod;
  pod.meta.name = "llama-0";
  pod.meta.uid = "u1";
  pod.meta.created = kCreated;
  pod.gates = std::move(gates);
  return pod;
}

TEST(Deadline, IsAnnotatedOrCountedFromCreationAndAtMostAnHour) {
  const struct {
    const char* what;
    std::optional<std::string> note;
    seconds expected;
  } cases[] = {{"no note", std::nullopt, seconds(60)},
               {"a note", "2026-11-21T08:05:00Z", seconds(300)},
               {"an early note", "2026-11-21T08:00:01Z", seconds(1)},
               {"a note from before the creation", "2026-11-21T07:00:00Z", seconds(-3600)},
               {"a note for ever", "9999-01-01T00:00:00Z", seconds(3600)},
               {"an empty note", "", seconds(60)},
               {"no time", "tomorrow", seconds(60)}};
  for (const auto& each : cases) {
    Pod pod = Held();
    if (each.note.has_value()) {
      pod.meta.annotations = {{std::string(kHeldUntilAnnotation), *each.note}};
    }
    EXPECT_EQ(Deadline(pod, seconds(60)) - kCreated, each.expected) << each.what;
  }
}

TEST(HeldSecondsOf, AreANumberUpToADayElseZero) {
  const struct {
    std::optional<std::string> note;
    double expected;
  } cases[] = {{std::nullopt, 0}, {"7.250", 7.25}, {"0", 0},    {"86399", 86'399}, {"86400", 0},
               {"-1", 0},         {"nan", 0},      {"inf", 0},  {"", 0},           {"3 s", 0},
               {"long", 0},       {"0x10", 16},    {"1e2", 100}};
  for (const auto& each : cases) {
    Pod pod = Held();
    if (each.note.has_value()) {
      pod.meta.annotations = {{std::string(kHeldSecondsAnnotation), *each.note}};
    }
    EXPECT_DOUBLE_EQ(HeldSecondsOf(pod), each.expected) << each.note.value_or("no note");
  }
}

TEST(ReleasePatch, RemovesOnlyTheGateOfCachewarm) {
  Pod pod = Held({"kueue.x-k8s.io/admission", std::string(kSchedulingGate), "other"});
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
  const Pod pod = Held({"kueue.x-k8s.io/admission"});
  EXPECT_FALSE(IsHeld(pod));
  EXPECT_TRUE(absl::IsNotFound(ReleasePatch(pod, {}).status()));
}

TEST(WithoutAnnotations, KeepsTestsReleaseAndAffinity) {
  Pod pod = Held();
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
  const Json patch = *AnnotationPatch(Held({"other", std::string(kSchedulingGate)}),
                                      kHeldUntilAnnotation, "2026-11-21T08:01:00Z");
  EXPECT_EQ(patch, Json::parse(R"([
      {"op":"test","path":"/metadata/uid","value":"u1"},
      {"op":"test","path":"/spec/schedulingGates/1/name","value":"cachewarm.io/wait-for-cache"},
      {"op":"add","path":"/metadata/annotations/cachewarm.io~1held-until",
       "value":"2026-11-21T08:01:00Z"}])"));
  EXPECT_TRUE(absl::IsNotFound(AnnotationPatch(Held({"other"}), "a", "b").status()));
}

TEST(DecodeGates, ReadsTheReleaseFieldsOfAnInvalidPod) {
  const Json object = Json::parse(R"({
      "metadata":{"name":"a","namespace":"b","uid":"u","labels":7,"annotations":{"k":1},
                  "creationTimestamp":"2026-11-21T08:00:00Z"},
      "spec":{"containers":"none","schedulingGates":[{"name":"cachewarm.io/wait-for-cache"}]}})");
  ASSERT_FALSE(DecodePod(std::make_shared<const Json>(object)).ok());
  const Pod pod = DecodeGates(object);
  EXPECT_TRUE(IsHeld(pod));
  EXPECT_EQ(pod.meta.name + pod.meta.ns + pod.meta.uid, "abu");
  EXPECT_EQ(pod.meta.created, kCreated);
  EXPECT_TRUE(ReleasePatch(pod, {.reason = "ReleasedAtDeadline", .held_seconds = 1}).ok());
  for (const char* nothing : {"{}", "[]", "7", R"({"metadata":[],"spec":1})",
                              R"({"spec":{"schedulingGates":[7,{"name":8}]}})"}) {
    EXPECT_FALSE(IsHeld(DecodeGates(Json::parse(nothing)))) << nothing;
  }
}

}  // namespace
}  // namespace cachewarm::api::gate
