// SPDX-License-Identifier: Apache-2.0
#include "agent/watch/status_writer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent/watch/own_node_cache.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + seconds(30);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

codec::Json NodeCacheNamed(const std::string& name) {
  return {{"apiVersion", "cachewarm.io/v1alpha1"},
          {"kind", "NodeCache"},
          {"metadata", {{"name", name}}},
          {"spec", codec::Json::object()}};
}

class StatusWriterTest : public ::testing::Test {
 protected:
  StatusWriterTest()
      : server_(clock_),
        runtime_{server_, clock_, [] { return 0.5; }, log_},
        writer_(runtime_, {.node_name = "node-a"}),
        running_([this](std::stop_token stop) { writer_.Run(stop); }) {
    status_.node.gpu_type = "cpu";
  }

  void PutObject() {
    server_.Put(kube::kNodeCaches, NodeCacheNamed("node-a"));
    uid_ = kube::UidOf(*server_.Find(kube::kNodeCaches, {"", "node-a"}));
  }
  int Writes() const {
    int writes = 0;
    for (const std::string& request : server_.Requests()) {
      writes += request.starts_with("apply ") ? 1 : 0;
    }
    return writes;
  }
  // Advances the clock by the coalescing second once the writer waits for it.
  void PassCoalescing() {
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(seconds(1));
  }
  std::string Written(const std::string& field) const {
    const kube::Object object = server_.Find(kube::kNodeCaches, {"", "node-a"});
    return object == nullptr ? "" : codec::TextAt(*object, {"status", "node", field});
  }

  fakes::FakeClock clock_;
  fakes::FakeApiServer server_;
  fakes::MemoryLog log_;
  kube::Runtime runtime_;
  StatusWriter writer_;
  api::NodeCacheStatus status_;
  std::string uid_;
  std::jthread running_;
};

TEST_F(StatusWriterTest, WritesNothingWithoutObject) {
  writer_.Set("", status_);
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(seconds(600));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(Writes(), 0);
}

TEST_F(StatusWriterTest, WritesFirstStatusAfterCoalescing) {
  PutObject();
  writer_.Set(uid_, status_);
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(Writes(), 0);
  PassCoalescing();
  EXPECT_TRUE(Eventually([&] { return Written("gpuType") == "cpu"; }));
  EXPECT_TRUE(Eventually([&] { return writer_.HasWritten(); }));
}

TEST_F(StatusWriterTest, CombinesChangesIntoOneWrite) {
  PutObject();
  for (int i = 0; i < 50; ++i) {
    status_.node.driver = std::to_string(i);
    writer_.Set(uid_, status_);
  }
  PassCoalescing();
  EXPECT_TRUE(Eventually([&] { return Written("driver") == "49"; }));
  EXPECT_EQ(Writes(), 1);
}

TEST_F(StatusWriterTest, WritesNothingWhileUnchanged) {
  PutObject();
  writer_.Set(uid_, status_);
  PassCoalescing();
  ASSERT_TRUE(Eventually([&] { return writer_.HasWritten(); }));
  for (int i = 0; i < 20; ++i) {
    writer_.Set(uid_, status_);
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(seconds(10));
  }
  EXPECT_EQ(Writes(), 1);
}

TEST_F(StatusWriterTest, WritesHeartbeatAfterFiveMinutes) {
  PutObject();
  writer_.Set(uid_, status_);
  PassCoalescing();
  ASSERT_TRUE(Eventually([&] { return writer_.HasWritten(); }));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(seconds(300));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(Writes(), 1);
  clock_.Advance(seconds(60));
  EXPECT_TRUE(Eventually([&] { return Writes() == 2; }));
}

TEST_F(StatusWriterTest, RetriesWithBackoff) {
  PutObject();
  std::atomic<int> failures = 3;
  server_.Intercept([&](const kube::Request& request) {
    return request.verb == "apply" && failures-- > 0 ? absl::UnavailableError("503")
                                                     : absl::OkStatus();
  });
  writer_.Set(uid_, status_);
  ASSERT_TRUE(Eventually([&] {
    clock_.Advance(seconds(1));
    return writer_.HasWritten();
  }));
  EXPECT_EQ(Written("gpuType"), "cpu");
}

TEST_F(StatusWriterTest, WritesAgainForRecreatedObject) {
  PutObject();
  writer_.Set(uid_, status_);
  PassCoalescing();
  ASSERT_TRUE(Eventually([&] { return Writes() == 1; }));
  server_.Remove(kube::kNodeCaches, {"", "node-a"});
  writer_.Set("", status_);
  codec::Json again = NodeCacheNamed("node-a");
  again["metadata"]["uid"] = "another";
  server_.Put(kube::kNodeCaches, again);
  writer_.Set("another", status_);
  ASSERT_TRUE(Eventually([&] {
    clock_.Advance(seconds(1));
    return Written("gpuType") == "cpu";
  }));
}

TEST_F(StatusWriterTest, NeverTouchesTheSpec) {
  codec::Json object = NodeCacheNamed("node-a");
  object["spec"]["warmups"] = codec::Json::array({{{"uid", "u"}, {"name", "w"}}});
  server_.Put(kube::kNodeCaches, object);
  uid_ = kube::UidOf(*server_.Find(kube::kNodeCaches, {"", "node-a"}));
  writer_.Set(uid_, status_);
  PassCoalescing();
  ASSERT_TRUE(Eventually([&] { return Written("gpuType") == "cpu"; }));
  EXPECT_EQ((*server_.Find(kube::kNodeCaches, {"", "node-a"}))["spec"], object["spec"]);
}

TEST(OwnNodeCache, IgnoresOtherNodeCaches) {
  fakes::FakeClock clock;
  fakes::FakeApiServer server(clock);
  fakes::MemoryLog log;
  std::mutex mutex;
  std::vector<std::string> seen;
  OwnNodeCache own({server, clock, [] { return 0.5; }, log}, "node-a",
                   [&](std::shared_ptr<const api::NodeCache> node_cache) {
                     std::lock_guard lock(mutex);
                     seen.push_back(node_cache == nullptr ? "gone" : node_cache->name);
                   });
  const auto count = [&] {
    std::lock_guard lock(mutex);
    return seen.size();
  };
  server.Put(kube::kNodeCaches, NodeCacheNamed("node-b"));
  const std::jthread running([&](std::stop_token stop) { own.Run(stop); });
  ASSERT_TRUE(Eventually([&] { return own.HasSynced() && server.watches() == 1; }));
  server.Put(kube::kNodeCaches, NodeCacheNamed("node-a"));
  ASSERT_TRUE(Eventually([&] { return count() == 1; }));
  server.Put(kube::kNodeCaches, NodeCacheNamed("node-c"));
  server.Remove(kube::kNodeCaches, {"", "node-a"});
  ASSERT_TRUE(Eventually([&] { return count() == 2; }));
  EXPECT_EQ(seen, (std::vector<std::string>{"node-a", "gone"}));
}

TEST(OwnNodeCache, KeepsSpecIfNewOneCannotBeDecoded) {
  fakes::FakeClock clock;
  fakes::FakeApiServer server(clock);
  fakes::MemoryLog log;
  std::atomic<int> calls = 0;
  OwnNodeCache own({server, clock, [] { return 0.5; }, log}, "node-a",
                   [&](const std::shared_ptr<const api::NodeCache>&) { ++calls; });
  server.Put(kube::kNodeCaches, NodeCacheNamed("node-a"));
  const std::jthread running([&](std::stop_token stop) { own.Run(stop); });
  ASSERT_TRUE(Eventually([&] { return calls == 1 && server.watches() == 1; }));
  codec::Json broken = NodeCacheNamed("node-a");
  broken["spec"]["warmups"] = "not a list";
  server.Put(kube::kNodeCaches, broken);
  server.Put(kube::kNodeCaches, NodeCacheNamed("node-a"));
  ASSERT_TRUE(Eventually([&] { return calls == 2; }));
}

}  // namespace
}  // namespace cachewarm::agent
