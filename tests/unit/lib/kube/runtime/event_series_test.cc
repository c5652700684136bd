// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/event_series.h"

#include <gtest/gtest.h>

#include "fmt/format.h"
#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

using codec::Json;
using std::chrono::seconds;

Object Pod(const std::string& name, const std::string& ns = "team") {
  Json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"name", name}, {"uid", "uid-" + name}}}};
  if (!ns.empty()) {
    pod["metadata"]["namespace"] = ns;
  }
  return std::make_shared<const Json>(std::move(pod));
}

class EventSeriesTest : public testing::Test {
 protected:
  EventSeries::AddResult Add(const Event& event) {
    return series_.Add(event, now_, WallTime(now_.time_since_epoch()), 0.5);
  }
  static Event Held(const std::string& name, const std::string& note = "held") {
    return {.regarding = Pod(name), .reason = "PodHeld", .action = "Hold", .note = note};
  }

  EventRecorderOptions options_{.controller = "cachewarm.io/operator",
                                .instance = "operator-1",
                                .series_max = 10,
                                .burst = 3,
                                .refill = Duration(60'000)};
  EventSeries series_{options_};
  MonoTime now_{seconds(100'000)};
};

TEST_F(EventSeriesTest, NewEventHasEveryRequiredField) {
  Event event = Held("a", "waits for its node");
  event.is_warning = true;
  const auto verdict = Add(event);
  ASSERT_TRUE(verdict.create.has_value());
  EXPECT_EQ(verdict.create->path, "/apis/events.k8s.io/v1/namespaces/team/events");
  const Json body = Json::parse(verdict.create->body);
  EXPECT_TRUE(body["metadata"]["name"].get<std::string>().starts_with("a."));
  EXPECT_EQ(body["eventTime"], "1970-01-02T03:46:40.000000Z");
  EXPECT_EQ(body["reportingController"], "cachewarm.io/operator");
  EXPECT_EQ(body["reportingInstance"], "operator-1");
  EXPECT_EQ(body["type"], "Warning");
  EXPECT_EQ(body["reason"], "PodHeld");
  EXPECT_EQ(body["action"], "Hold");
  EXPECT_EQ(body["note"], "waits for its node");
  EXPECT_EQ(body["regarding"], (Json{{"apiVersion", "v1"},
                                     {"kind", "Pod"},
                                     {"name", "a"},
                                     {"namespace", "team"},
                                     {"uid", "uid-a"}}));
  EXPECT_FALSE(body.contains("series"));
}

TEST_F(EventSeriesTest, EventsAboutClusterScopedObjectsGoToTheDefaultNamespace) {
  const auto verdict = Add({.regarding = Pod("node-1", ""), .reason = "R", .action = "A"});
  EXPECT_EQ(verdict.create->path, "/apis/events.k8s.io/v1/namespaces/default/events");
}

TEST_F(EventSeriesTest, RepeatsCountUpAndAreSentAtMostEveryTenSeconds) {
  const auto first = Add(Held("a"));
  const std::string name = Json::parse(first.create->body)["metadata"]["name"];
  EXPECT_EQ(series_.NextDue(), std::nullopt);
  for (int i = 0; i < 5; ++i) {
    now_ += seconds(1);
    const auto repeat = Add(Held("a"));
    EXPECT_FALSE(repeat.create.has_value());
    EXPECT_FALSE(repeat.is_dropped);
    EXPECT_TRUE(series_.Due(now_).empty());
  }
  EXPECT_EQ(series_.NextDue(), now_ + seconds(5));
  now_ += seconds(5);
  const std::vector<Request> due = series_.Due(now_);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].path, "/apis/events.k8s.io/v1/namespaces/team/events/" + name);
  EXPECT_EQ(due[0].method, "PATCH");
  EXPECT_EQ(Json::parse(due[0].body)["series"]["count"], 6);
  EXPECT_EQ(Json::parse(due[0].body)["series"]["lastObservedTime"], "1970-01-02T03:46:45.000000Z");
  EXPECT_TRUE(series_.Due(now_ + seconds(100)).empty());
}

TEST_F(EventSeriesTest, RepeatAfterTheWindowIsANewEvent) {
  Add(Held("a"));
  now_ += options_.series_window;
  EXPECT_TRUE(Add(Held("a")).create.has_value());
  EXPECT_EQ(series_.size(), 1U);
}

TEST_F(EventSeriesTest, DifferentFieldsAreDifferentEvents) {
  EXPECT_TRUE(Add(Held("a")).create.has_value());
  EXPECT_TRUE(Add(Held("b")).create.has_value());
  EXPECT_TRUE(Add(Held("a", "another note")).create.has_value());
  Event warning = Held("a");
  warning.is_warning = true;
  EXPECT_TRUE(Add(warning).create.has_value());
}

TEST_F(EventSeriesTest, LimitsEventsPerObject) {
  int created = 0;
  int dropped = 0;
  const auto burst = [&] {
    for (int i = 0; i < 10; ++i) {
      const auto verdict =
          Add(Held("a", fmt::format("note {} {}", i, now_.time_since_epoch().count())));
      created += verdict.create.has_value() ? 1 : 0;
      dropped += verdict.is_dropped ? 1 : 0;
    }
  };
  burst();
  EXPECT_EQ(created, 3);
  EXPECT_EQ(dropped, 7);
  EXPECT_TRUE(Add(Held("b")).create.has_value()) << "others still may";
  now_ += seconds(120);
  burst();
  EXPECT_EQ(created, 5) << "one a minute comes back";
}

TEST_F(EventSeriesTest, MemoryIsBounded) {
  for (int i = 0; i < 1000; ++i) {
    now_ += seconds(1);
    Add(Held(fmt::format("pod-{}", i)));
    ASSERT_LE(series_.size(), 10U);
  }
  EXPECT_FALSE(Add(Held("pod-999")).create.has_value()) << "the newest are remembered";
  EXPECT_TRUE(Add(Held("pod-1")).create.has_value()) << "the oldest are not";
}

TEST_F(EventSeriesTest, RecreatesForgottenEvent) {
  const std::string name = Json::parse(Add(Held("a")).create->body)["metadata"]["name"];
  series_.Forget({.ns = "team", .name = "another"});
  EXPECT_EQ(series_.size(), 1U);
  series_.Forget({.ns = "team", .name = name});
  EXPECT_EQ(series_.size(), 0U);
  EXPECT_TRUE(Add(Held("a")).create.has_value());
}

TEST_F(EventSeriesTest, TruncatesLongTextsBetweenCharacters) {
  std::string note;
  while (note.size() < 3000) {
    note += "\u20ac";
  }
  Event event = Held(std::string(253, 'n'), note);
  event.reason = std::string(500, 'R');
  const Json body = Json::parse(Add(event).create->body);
  EXPECT_EQ(body["note"].get<std::string>().size(), 1023U);
  EXPECT_EQ(body["reason"].get<std::string>().size(), 128U);
  EXPECT_LE(body["metadata"]["name"].get<std::string>().size(), 253U);
}

}  // namespace
}  // namespace cachewarm::kube
