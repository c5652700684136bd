// SPDX-License-Identifier: Apache-2.0
#include "lib/api/condition.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"

namespace cachewarm::api {
namespace {

using codec::Json;

WallTime At(int64_t millis) {
  return WallTime(Duration(millis));
}

TEST(Condition, FirstUpdateAddsTheCondition) {
  std::vector<Condition> conditions;
  SetCondition(conditions, "Ready", {true, "Injecting", "all is well"}, 3, At(5000));
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0], (Condition{"Ready", "True", "Injecting", "all is well", 3, At(5000)}));
}

TEST(Condition, TransitionTimeChangesOnlyWithTheStatus) {
  std::vector<Condition> conditions;
  SetCondition(conditions, "Ready", {true, "Injecting", "a"}, 1, At(5000));
  SetCondition(conditions, "Ready", {true, "Injecting", "b"}, 2, At(9000));
  EXPECT_EQ(conditions[0].last_transition_time, At(5000));
  EXPECT_EQ(conditions[0].message, "b");
  EXPECT_EQ(conditions[0].observed_generation, 2);
  SetCondition(conditions, "Ready", {false, "Paused", "c"}, 2, At(11000));
  EXPECT_EQ(conditions[0].last_transition_time, At(11000));
  EXPECT_EQ(conditions[0].status, "False");
}

TEST(Condition, TransitionTimeHasWholeSeconds) {
  std::vector<Condition> conditions;
  SetCondition(conditions, "Ready", {true, "Injecting", ""}, 1, At(5999));
  EXPECT_EQ(conditions[0].last_transition_time, At(5000));
}

TEST(Condition, OtherConditionsStayUnchanged) {
  std::vector<Condition> conditions;
  SetCondition(conditions, "Ready", {true, "Injecting", ""}, 1, At(1000));
  SetCondition(conditions, "Warm", {false, "NoBundle", ""}, 1, At(2000));
  SetCondition(conditions, "Ready", {false, "Paused", ""}, 1, At(3000));
  ASSERT_EQ(conditions.size(), 2U);
  EXPECT_EQ(FindCondition(conditions, "Ready")->reason, "Paused");
  EXPECT_EQ(FindCondition(conditions, "Warm")->reason, "NoBundle");
  EXPECT_EQ(FindCondition(conditions, "Degraded"), nullptr);
}

TEST(Condition, ReasonReplacesAnEmptyMessage) {
  std::vector<Condition> conditions;
  SetCondition(conditions, "Degraded", {false, "Healthy", ""}, 1, At(1000));
  EXPECT_EQ(conditions[0].message, "Healthy");
}

TEST(Condition, LongMessageIsCutAtACharacterBoundary) {
  std::vector<Condition> conditions;
  std::string message(1023, 'x');
  message += "\xC3\xA4 and more";
  SetCondition(conditions, "Ready", {true, "Injecting", message}, 1, At(1000));
  EXPECT_EQ(conditions[0].message, std::string(1023, 'x'));
}

TEST(Condition, ReadsBackAsItWasWritten) {
  const Condition written{"Warm", "False", "Building", "1 of 2", 7, At(1'700'000'000'000)};
  const Json json = Encode(written);
  EXPECT_EQ(json["lastTransitionTime"], "2023-11-14T22:13:20Z");
  codec::Reader reader(json, "status.conditions[0]");
  Condition read;
  Decode(reader, read);
  ASSERT_TRUE(reader.status().ok()) << reader.status();
  EXPECT_EQ(read, written);
}

TEST(Condition, MissingTypeIsNamed) {
  const Json json = {{"status", "True"}};
  codec::Reader reader(json, "status.conditions[0]");
  Condition read;
  Decode(reader, read);
  EXPECT_EQ(reader.status().message(), "status.conditions[0].type: is required");
}

}  // namespace
}  // namespace cachewarm::api
