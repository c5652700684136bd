// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/event_recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"

namespace cachewarm::kube {
namespace {

using codec::Json;
using fakes::Await;
using std::chrono::seconds;

class EventRecorderTest : public testing::Test {
 protected:
  Event Held(const std::string& name) {
    return {.regarding = std::make_shared<const Json>(
                Json{{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"metadata", {{"name", name}, {"namespace", "team"}, {"uid", name}}}}),
            .reason = "PodHeld",
            .action = "Hold",
            .note = "held"};
  }
  Runtime runtime() {
    return {server_, clock_, [] { return 0.25; }, log_};
  }

  fakes::FakeClock clock_;
  fakes::MemoryLog log_;
  fakes::FakeApiServer server_{clock_};
  EventRecorderOptions options_{.controller = "cachewarm.io/test", .instance = "one"};
};

TEST_F(EventRecorderTest, WritesEventsAndCountsRepeats) {
  EventRecorder recorder(runtime(), options_);
  recorder.Record(Held("a"));
  EXPECT_TRUE(recorder.Flush(seconds(60)));
  ASSERT_EQ(server_.All(kEvents).size(), 1U);
  recorder.Record(Held("a"));
  recorder.Record(Held("a"));
  EXPECT_TRUE(recorder.Flush(seconds(60)));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(seconds(10));
  ASSERT_TRUE(Await([&] { return server_.All(kEvents)[0]->contains("series"); }));
  EXPECT_EQ(server_.All(kEvents)[0]->at("series")["count"], 3);
  EXPECT_EQ(server_.All(kEvents).size(), 1U);
}

TEST_F(EventRecorderTest, SeriesRestartsWhenServerDeletedItsEvent) {
  EventRecorder recorder(runtime(), options_);
  recorder.Record(Held("a"));
  EXPECT_TRUE(recorder.Flush(seconds(60)));
  server_.Remove(kEvents, NameOf(*server_.All(kEvents)[0]));
  recorder.Record(Held("a"));
  EXPECT_TRUE(recorder.Flush(seconds(60)));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(seconds(10));
  ASSERT_TRUE(Await([&] {
    const auto requests = server_.Requests();
    return !requests.empty() && requests.back().starts_with("patch");
  }));
  clock_.Advance(Duration(1));
  ASSERT_TRUE(Await([&] {
    recorder.Record(Held("a"));
    return recorder.Flush(seconds(60)) && server_.All(kEvents).size() == 1;
  }));
}

TEST_F(EventRecorderTest, DropsEventsWhenFullWithoutBlocking) {
  std::atomic<bool> entered = false;
  std::atomic<bool> released = false;
  server_.Intercept([&](const Request&) {
    entered = true;
    Await([&] { return released.load(); });
    return absl::OkStatus();
  });
  options_.queue_max = 5;
  EventRecorder recorder(runtime(), options_);
  recorder.Record(Held("first"));
  ASSERT_TRUE(Await([&] { return entered.load(); }));
  for (int i = 0; i < 20; ++i) {
    recorder.Record(Held(std::to_string(i)));
  }
  EXPECT_EQ(recorder.dropped(), 15U);
  released = true;
  EXPECT_TRUE(recorder.Flush(seconds(60)));
  EXPECT_EQ(server_.All(kEvents).size(), 6U);
}

TEST_F(EventRecorderTest, LogsUnwritableEventOnce) {
  server_.Intercept([](const Request&) { return ToStatus({.code = 403, .message = "rbac"}); });
  EventRecorder recorder(runtime(), options_);
  recorder.Record(Held("a"));
  EXPECT_TRUE(recorder.Flush(seconds(60)));
  EXPECT_EQ(log_.warnings(), (std::vector<std::string>{"event could not be written"}));
}

TEST_F(EventRecorderTest, IgnoresEventWithoutObject) {
  EventRecorder recorder(runtime(), options_);
  recorder.Record({.regarding = nullptr, .reason = "R"});
  EXPECT_TRUE(recorder.Flush(seconds(60)));
  EXPECT_TRUE(server_.Requests().empty());
}

TEST_F(EventRecorderTest, EndsAtOnceWithQueuedEvents) {
  const auto began = std::chrono::steady_clock::now();
  {
    EventRecorder recorder(runtime(), options_);
    for (int i = 0; i < 500; ++i) {
      recorder.Record(Held(std::to_string(i)));
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(10));
}

// A server that does not answer requests for events of namespace "team".
class SilentServer final : public Client {
 public:
  explicit SilentServer(Client& server) : server_(server) {}
  absl::StatusOr<Json> Do(const Request& request, std::stop_token stop) override {
    if (request.path.find("/namespaces/team/") != std::string::npos) {
      ++tries;
      std::mutex mutex;
      std::condition_variable_any wake;
      std::unique_lock lock(mutex);
      wake.wait(lock, stop, [] { return false; });
      return absl::CancelledError("stopped");
    }
    return server_.Do(request, std::move(stop));
  }
  absl::Status Watch(const Request&, const WatchEventHandler&, std::stop_token) override {
    return absl::UnimplementedError("");
  }

  std::atomic<int> tries = 0;

 private:
  Client& server_;
};

TEST_F(EventRecorderTest, NamespaceWithoutAnAnswerDelaysTheEventsOfOthersOnce) {
  SilentServer silent(server_);
  EventRecorder recorder({silent, clock_, [] { return 0.25; }, log_}, options_);
  const auto in_other_namespace = [this](const std::string& name) {
    Event event = Held(name);
    Json regarding = *event.regarding;
    regarding["metadata"]["namespace"] = "other";
    event.regarding = std::make_shared<const Json>(regarding);
    return event;
  };
  for (const char* name : {"a", "b", "c"}) {
    recorder.Record(Held(name));
  }
  recorder.Record(in_other_namespace("d"));
  ASSERT_TRUE(Await([&] { return silent.tries == 1; }));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(seconds(3));
  ASSERT_TRUE(Await([&] { return server_.All(kEvents).size() == 1; }));
  EXPECT_EQ(silent.tries, 1);
  EXPECT_EQ(recorder.dropped(), 3U);
  clock_.Advance(std::chrono::minutes(5));
  recorder.Record(Held("e"));
  EXPECT_TRUE(Await([&] { return silent.tries == 2; })) << "tried again after five minutes";
}

}  // namespace
}  // namespace cachewarm::kube
