// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/core/held.h"

#include <gtest/gtest.h>

#include <optional>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "lib/gate/client/release.h"
#include "tests/unit/lib/gate/held_pod.h"

namespace cachewarm::gate {
namespace {

using codec::Json;
using std::chrono::seconds;

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
    api::Pod pod = Held();
    if (each.note.has_value()) {
      pod.meta.annotations = {{std::string(api::kHeldUntilAnnotation), *each.note}};
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
    api::Pod pod = Held();
    if (each.note.has_value()) {
      pod.meta.annotations = {{std::string(api::kHeldSecondsAnnotation), *each.note}};
    }
    EXPECT_DOUBLE_EQ(HeldSecondsOf(pod), each.expected) << each.note.value_or("no note");
  }
}

TEST(DecodeGates, ReadsTheReleaseFieldsOfAnInvalidPod) {
  const Json object = Json::parse(R"({
      "metadata":{"name":"a","namespace":"b","uid":"u","labels":7,"annotations":{"k":1},
                  "creationTimestamp":"2026-11-21T08:00:00Z"},
      "spec":{"containers":"none","schedulingGates":[{"name":"cachewarm.io/wait-for-cache"}]}})");
  ASSERT_FALSE(api::DecodePod(std::make_shared<const Json>(object)).ok());
  const api::Pod pod = DecodeGates(object);
  EXPECT_TRUE(IsHeld(pod));
  EXPECT_EQ(pod.meta.name + pod.meta.ns + pod.meta.uid, "abu");
  EXPECT_EQ(pod.meta.created, kCreated);
  EXPECT_TRUE(ReleasePatch({.pod = pod, .reason = "ReleasedAtDeadline", .held_seconds = 1}).ok());
  for (const char* nothing : {"{}", "[]", "7", R"({"metadata":[],"spec":1})",
                              R"({"spec":{"schedulingGates":[7,{"name":8}]}})"}) {
    EXPECT_FALSE(IsHeld(DecodeGates(Json::parse(nothing)))) << nothing;
  }
}

}  // namespace
}  // namespace cachewarm::gate
