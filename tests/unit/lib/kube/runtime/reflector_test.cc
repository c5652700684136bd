// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/reflector.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "fmt/format.h"
#include "lib/codec/json_path.h"
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

class ReflectorTest : public testing::Test {
 protected:
  // Runs a reflector until the result goes out of scope. Captured variables must outlive it.
  [[nodiscard]] std::jthread Start(ReflectorOptions options = {.resource = kPods}) {
    reflector_.emplace(Runtime{server_, clock_, [] { return 0.0; }, log_}, std::move(options));
    reflector_->OnChange([this](const Change& change) {
      std::lock_guard lock(mutex_);
      changes_.push_back(fmt::format("{}{}",
                                     change.before == nullptr  ? "+"
                                     : change.after == nullptr ? "-"
                                                               : "=",
                                     NameOf(change.object()).name));
    });
    return std::jthread([this](std::stop_token stop) { reflector_->Run(stop); });
  }
  void Put(const std::string& name, const std::string& node = "", const std::string& ns = "a") {
    server_.Put(kPods, {{"metadata",
                         {{"name", name},
                          {"namespace", ns},
                          {"managedFields", Json::array({{{"manager", "x"}}})}}},
                        {"spec", {{"nodeName", node}}}});
  }
  bool AwaitChanges(const std::vector<std::string>& wanted) {
    return Await([&] { return Changes() == wanted; });
  }
  std::vector<std::string> Changes() {
    std::lock_guard lock(mutex_);
    return changes_;
  }
  int Count(const std::string& verb) {
    int count = 0;
    for (const std::string& request : server_.Requests()) {
      count += request.starts_with(verb + " ") ? 1 : 0;
    }
    return count;
  }
  bool AwaitWatch() {
    return Await([&] { return server_.watches() == 1; });
  }

  fakes::FakeClock clock_;
  fakes::MemoryLog log_;
  fakes::FakeApiServer server_{clock_};
  std::optional<Reflector> reflector_;
  std::mutex mutex_;
  std::vector<std::string> changes_;
};

TEST_F(ReflectorTest, MirrorsObjectsAndChanges) {
  Put("one");
  std::jthread running = Start();
  ASSERT_TRUE(AwaitChanges({"+one"}));
  Put("two");
  Put("one", "node");
  server_.Remove(kPods, {"a", "two"});
  ASSERT_TRUE(AwaitChanges({"+one", "+two", "=one", "-two"}));
  EXPECT_EQ(reflector_->store().size(), 1U);
  EXPECT_EQ(codec::TextAt(*reflector_->store().Get({"a", "one"}), {"spec", "nodeName"}), "node");
}

TEST_F(ReflectorTest, TrimsObjectsAndSetsTheirKind) {
  Put("listed");
  std::jthread running = Start(
      {.resource = kPods, .project = [](Json& object) { object["spec"]["extra"] = "added"; }});
  ASSERT_TRUE(AwaitWatch());
  Put("watched");
  ASSERT_TRUE(AwaitChanges({"+listed", "+watched"}));
  for (const char* name : {"listed", "watched"}) {
    const Object object = reflector_->store().Get({"a", name});
    EXPECT_FALSE(object->at("metadata").contains("managedFields")) << name;
    EXPECT_EQ(codec::TextAt(*object, {"apiVersion"}), "v1") << name;
    EXPECT_EQ(codec::TextAt(*object, {"kind"}), "Pod") << name;
    EXPECT_EQ(codec::TextAt(*object, {"spec", "extra"}), "added") << name;
  }
}

TEST_F(ReflectorTest, PagedListReplacesStoreAtOnce) {
  for (int i = 0; i < 10; ++i) {
    Put(fmt::format("pod-{}", i));
  }
  std::atomic<size_t> most_while_listing = 0;
  server_.Intercept([&](const Request& request) {
    if (request.verb == "list" && reflector_.has_value()) {
      most_while_listing = std::max(most_while_listing.load(), reflector_->store().size());
    }
    return absl::OkStatus();
  });
  std::jthread running = Start({.resource = kPods, .page_items = 3});
  ASSERT_TRUE(Await([&] { return reflector_->store().HasSynced(); }));
  EXPECT_EQ(reflector_->store().size(), 10U);
  EXPECT_EQ(Count("list"), 4);
  EXPECT_EQ(most_while_listing, 0U);
}

TEST_F(ReflectorTest, AppliesNamespaceAndSelectors) {
  Put("elsewhere", "n1", "b");
  Put("here", "n1");
  Put("other", "n2");
  std::jthread running =
      Start({.resource = kPods, .ns = "a", .field_selector = "spec.nodeName=n1"});
  ASSERT_TRUE(AwaitChanges({"+here"}));
  ASSERT_TRUE(AwaitWatch());
  Put("other", "n1");
  Put("here", "n2");
  ASSERT_TRUE(AwaitChanges({"+here", "+other", "-here"})) << "an object may leave the selection";
}

TEST_F(ReflectorTest, BrokenWatchResumesFromItsVersion) {
  Put("one");
  std::jthread running = Start();
  ASSERT_TRUE(AwaitWatch());
  server_.BreakWatches(absl::UnavailableError("reset"));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  Put("meanwhile");
  ASSERT_TRUE(Await([&] {
    clock_.Advance(Duration(100));
    return Changes().size() == 2;
  }));
  EXPECT_EQ(Count("list"), 1) << "nothing was listed again";
}

TEST_F(ReflectorTest, CleanlyEndedWatchResumesAtOnce) {
  std::jthread running = Start();
  ASSERT_TRUE(AwaitWatch());
  clock_.Advance(std::chrono::seconds(290));
  ASSERT_TRUE(Await([&] { return Count("watch") == 2 && server_.watches() == 1; }));
  Put("one");
  EXPECT_TRUE(AwaitChanges({"+one"}));
  EXPECT_TRUE(log_.warnings().empty());
}

TEST_F(ReflectorTest, ExpiredVersionRelistsAndReportsMissedChanges) {
  Put("stays");
  Put("goes");
  Put("changes");
  std::atomic<bool> compacted = false;
  std::jthread running = Start();
  ASSERT_TRUE(AwaitWatch());
  // Only the second watch request has an expired version.
  server_.Intercept([&](const Request& request) {
    if (request.verb == "watch" && !compacted.exchange(true)) {
      server_.Remove(kPods, {"a", "goes"});
      Put("changes", "node");
      Put("comes");
      server_.Compact();
    }
    return absl::OkStatus();
  });
  server_.BreakWatches(absl::OkStatus());
  ASSERT_TRUE(Await([&] {
    clock_.Advance(Duration(100));
    return Changes().size() == 6;
  }));
  std::vector<std::string> missed = Changes();
  missed.erase(missed.begin(), missed.begin() + 3);
  EXPECT_EQ(missed, (std::vector<std::string>{"=changes", "+comes", "-goes"}));
  EXPECT_EQ(Count("list"), 2);
  EXPECT_EQ(reflector_->store().size(), 3U);
}

TEST_F(ReflectorTest, ErrorEventRelists) {
  Put("one");
  std::jthread running = Start();
  ASSERT_TRUE(AwaitWatch());
  server_.BreakWatches(ToStatus({.code = 410, .reason = "Expired", .message = "old"}));
  ASSERT_TRUE(Await([&] { return Count("list") == 2 && server_.watches() == 1; }));
  EXPECT_EQ(Changes(), (std::vector<std::string>{"+one"})) << "nothing changed meanwhile";
}

TEST_F(ReflectorTest, BookmarksAdvanceTheVersion) {
  std::mutex query_mutex;
  std::string query;
  Put("one");
  std::jthread running = Start();
  ASSERT_TRUE(AwaitWatch());
  const Object moved = server_.Put(kNodes, {{"metadata", {{"name", "moves-the-version"}}}});
  server_.Intercept([&](const Request& request) {
    std::lock_guard lock(query_mutex);
    query = "&" + request.query + "&";
    return absl::OkStatus();
  });
  server_.SendBookmarks();
  server_.BreakWatches(absl::OkStatus());
  ASSERT_TRUE(Await([&] {
    clock_.Advance(Duration(100));
    return Count("watch") == 2;
  }));
  ASSERT_TRUE(AwaitWatch());
  EXPECT_EQ(Changes(), (std::vector<std::string>{"+one"}));
  std::lock_guard lock(query_mutex);
  EXPECT_NE(query.find("&resourceVersion=" + ResourceVersionOf(*moved) + "&"), std::string::npos)
      << query;
}

TEST_F(ReflectorTest, RetriesFailingServerWithBackoff) {
  std::atomic<bool> down = true;
  server_.Intercept([&](const Request&) -> absl::Status {
    return down ? absl::UnavailableError("down") : absl::OkStatus();
  });
  Put("one");
  std::jthread running = Start();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    const int before = Count("list");
    clock_.Advance(std::chrono::seconds(30));
    ASSERT_TRUE(Await([&] { return Count("list") == before + 1; }));
  }
  down = false;
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(std::chrono::seconds(30));
  EXPECT_TRUE(AwaitChanges({"+one"}));
  EXPECT_GE(log_.warnings().size(), 5U);
}

TEST_F(ReflectorTest, LimitsBackoff) {
  std::atomic<bool> down = true;
  server_.Intercept([&](const Request&) -> absl::Status {
    return down ? absl::UnavailableError("down") : absl::OkStatus();
  });
  Put("one");
  std::jthread running =
      Start({.resource = kPods, .backoff_max = std::chrono::milliseconds(1'000)});
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    const int before = Count("list");
    clock_.Advance(std::chrono::milliseconds(1'500));
    ASSERT_TRUE(Await([&] { return Count("list") == before + 1; })) << i;
  }
  down = false;
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(std::chrono::milliseconds(1'500));
  EXPECT_TRUE(AwaitChanges({"+one"}));
}

TEST_F(ReflectorTest, ListInterruptedBetweenPagesStartsOver) {
  for (int i = 0; i < 6; ++i) {
    Put(fmt::format("pod-{}", i));
  }
  std::atomic<int> lists = 0;
  server_.Intercept([&](const Request& request) -> absl::Status {
    const bool breaks = request.verb == "list" && ++lists == 2;
    return breaks ? absl::UnavailableError("reset") : absl::OkStatus();
  });
  std::jthread running = Start({.resource = kPods, .page_items = 4});
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(reflector_->store().size(), 0U);
  clock_.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(Await([&] { return reflector_->store().HasSynced(); }));
  EXPECT_EQ(reflector_->store().size(), 6U);
}

TEST_F(ReflectorTest, StopsWhileWatchingAndWaiting) {
  {
    const std::jthread watching = Start();
    ASSERT_TRUE(AwaitWatch());
  }
  server_.Intercept([](const Request&) { return absl::UnavailableError("down"); });
  const std::jthread waiting = Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
}

TEST_F(ReflectorTest, AwaitSyncedWaitsForAllStores) {
  std::jthread running = Start();
  const Store never;
  const std::vector<const Store*> both = {&reflector_->store(), &never};
  EXPECT_TRUE(AwaitSynced({&reflector_->store()}, clock_, std::chrono::hours(1), {}));
  EXPECT_FALSE(AwaitSynced(both, clock_, Duration(0), {}));
}

}  // namespace
}  // namespace cachewarm::kube
