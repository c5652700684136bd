// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/starts/start_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using api::StartResult;
using api::StartSample;
using testing::HasSubstr;

api::Pod NamedPod() {
  api::Pod pod;
  pod.meta.ns = "models";
  pod.meta.name = "llama-1";
  pod.meta.uid = "uid-1";
  return pod;
}

struct StartEventCase {
  const char* name;
  StartSample sample;
  const char* reason;
  bool warning;
  std::vector<std::string> words;
};

class StartEvents : public testing::TestWithParam<StartEventCase> {};

TEST_P(StartEvents, HasReasonNumbersAndRemedy) {
  const StartEventCase& c = GetParam();
  const std::optional<EventRequest> event = MakeStartEvent(NamedPod(), c.sample);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->reason, c.reason);
  EXPECT_EQ(event->warning, c.warning);
  EXPECT_EQ(event->action, "Start");
  EXPECT_EQ(event->regarding.kind, "Pod");
  EXPECT_EQ(event->regarding.name, "llama-1");
  EXPECT_EQ(event->regarding.uid, "uid-1");
  EXPECT_LT(event->note.size(), 1'000U);
  for (const std::string& words : c.words) {
    EXPECT_THAT(event->note, HasSubstr(words));
  }
}

StartSample Sample(StartResult result, double start, double saved, double hold = 0) {
  return {.result = result, .start_seconds = start, .hold_seconds = hold, .saved_seconds = saved};
}

INSTANTIATE_TEST_SUITE_P(
    All, StartEvents,
    testing::Values(
        StartEventCase{"hit",
                       Sample(StartResult::kHit, 5.2, 13.25),
                       "StartedWarm",
                       false,
                       {"started warm in 5.2 s", "compiled nothing", "saved 13.2 s"}},
        StartEventCase{"held",
                       Sample(StartResult::kHit, 5.2, 3.5, 9.5),
                       "StartedWarm",
                       false,
                       {"saved 3.5 s", "9.5 s of holding the pod included"}},
        StartEventCase{"slow",
                       Sample(StartResult::kHit, 25, -4.5),
                       "StartedWarm",
                       false,
                       {"started warm in 25.0 s", "lost 4.5 s"}},
        StartEventCase{"partial",
                       Sample(StartResult::kPartial, 8, 6),
                       "StartedWarm",
                       false,
                       {"started warm in 8.0 s", "compiled the rest", "saved 6.0 s"}},
        StartEventCase{"cold",
                       Sample(StartResult::kCold, 18, 0),
                       "StartedCold",
                       false,
                       {"started cold in 18.0 s", "had no bundle", "condition Warm"}},
        StartEventCase{"miss",
                       Sample(StartResult::kMiss, 19, -1),
                       "CacheMissed",
                       true,
                       {"compiled everything again", "in 19.0 s", "lost 1.0 s", "Compare image"}},
        StartEventCase{"inert",
                       Sample(StartResult::kInert, 19, -1),
                       "CacheMissed",
                       true,
                       {"without reading it", "in 19.0 s", "Check whether a variable"}},
        StartEventCase{"hollow",
                       Sample(StartResult::kHollow, 12, 3),
                       "CacheMissed",
                       true,
                       {"built the native code again", "saved 3.0 s", "compiler of the image"}}),
    [](const auto& each) { return each.param.name; });

TEST(StartEvent, NumberThatWasNotMeasuredIsNotNamed) {
  const auto event = MakeStartEvent(NamedPod(), Sample(StartResult::kHit, 0, 0));
  EXPECT_EQ(event->note, "started warm: the engine compiled nothing");
}

TEST(StartEvent, BuilderAndUnknownStartsHaveNone) {
  for (const StartResult result : {StartResult::kBuilder, StartResult::kUnknown}) {
    EXPECT_FALSE(MakeStartEvent(NamedPod(), Sample(result, 9, 0)).has_value()) << Name(result);
  }
}

int EventsAbout(const Plan& plan, const std::string& pod) {
  return static_cast<int>(
      std::count_if(plan.events.begin(), plan.events.end(),
                    [&](const EventRequest& event) { return event.regarding.name == pod; }));
}

void Apply(fakes::SnapshotBuilder& builder, const Plan& plan) {
  builder.status() = plan.status;
}

TEST(StartEvent, IsSentOnceWhenTheStartIsCounted) {
  fakes::SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .published = 10, .compile_seconds = 12, .active = {"n1"}});
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 95});
  Plan plan = builder.Decide();
  EXPECT_EQ(EventsAbout(plan, "a"), 0) << "there is no evidence yet";
  builder.cache("n1").status.starts.push_back({.pod_uid = "uid-a", .result = StartResult::kHit});
  plan = builder.Decide();
  ASSERT_EQ(EventsAbout(plan, "a"), 1);
  EXPECT_TRUE(fakes::HasEvent(plan, "StartedWarm"));
  Apply(builder, plan);
  EXPECT_EQ(EventsAbout(builder.Decide(), "a"), 0) << "counted already";
}

TEST(StartEvent, StartOfABuilderHasNone) {
  fakes::SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 98});
  builder.cache("n1").status.starts.push_back({.pod_uid = "uid-a", .result = StartResult::kMiss});
  const Plan plan = builder.Decide();
  ASSERT_EQ(plan.starts_counted.size(), 1U);
  EXPECT_EQ(EventsAbout(plan, "a"), 0);
}

}  // namespace
}  // namespace cachewarm::plan
