// SPDX-License-Identifier: Apache-2.0
// Covers the test cases of client-go's workqueue and of kube-rs' scheduler.
#include "lib/kube/runtime/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/await.h"
#include "tests/fakes/fake_clock.h"

namespace cachewarm::kube {
namespace {

using fakes::Await;
using std::chrono::seconds;

class WorkQueueTest : public testing::Test {
 protected:
  // The next key, which must be there already.
  std::string Take() {
    EXPECT_GT(Due(), 0U);
    return queue_.Get({}).value_or("shut down");
  }
  // The number of queued keys after due keys were added.
  size_t Due() {
    std::stop_source stopped;
    std::jthread looker([&] {
      if (auto key = queue_.Get(stopped.get_token()); key.has_value()) {
        queue_.Add(*key);
        queue_.Done(*key);
      }
    });
    Await([&] { return queue_.size() > 0 || clock_.AwaitWaiters(1, seconds(0)); });
    stopped.request_stop();
    looker.join();
    return queue_.size();
  }

  fakes::FakeClock clock_;
  WorkQueue queue_{clock_};
};

TEST_F(WorkQueueTest, ReturnsKeysInOrderOfArrival) {
  queue_.Add("a");
  queue_.Add("b");
  queue_.Add("c");
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_EQ(queue_.Get({}), key);
    queue_.Done(key);
  }
  EXPECT_EQ(queue_.size(), 0U);
}

TEST_F(WorkQueueTest, DoesNotQueueWaitingKeyTwice) {
  queue_.Add("a");
  queue_.Add("a");
  queue_.Add("b");
  queue_.Add("a");
  EXPECT_EQ(queue_.size(), 2U);
}

TEST_F(WorkQueueTest, AddWhileProcessingRequeuesAfterDone) {
  queue_.Add("a");
  EXPECT_EQ(queue_.Get({}), "a");
  queue_.Add("a");
  queue_.Add("a");
  EXPECT_EQ(queue_.size(), 0U) << "never returned twice at once";
  queue_.Done("a");
  EXPECT_EQ(queue_.size(), 1U);
  EXPECT_EQ(queue_.Get({}), "a");
  queue_.Done("a");
  EXPECT_EQ(queue_.size(), 0U);
}

TEST_F(WorkQueueTest, ProcessingKeyDoesNotBlockOthers) {
  queue_.Add("a");
  EXPECT_EQ(queue_.Get({}), "a");
  queue_.Add("a");
  queue_.Add("b");
  EXPECT_EQ(queue_.Get({}), "b");
}

TEST_F(WorkQueueTest, DoneWithoutAddLeavesQueueEmpty) {
  queue_.Add("a");
  queue_.Get({});
  queue_.Done("a");
  queue_.Done("never seen");
  EXPECT_EQ(queue_.size(), 0U);
}

TEST_F(WorkQueueTest, GetWaitsForAnAdd) {
  auto taken = std::async(std::launch::async, [&] { return queue_.Get({}); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  queue_.Add("a");
  EXPECT_EQ(taken.get(), "a");
}

TEST_F(WorkQueueTest, GetEndsWithStop) {
  std::stop_source stop;
  auto taken = std::async(std::launch::async, [&] { return queue_.Get(stop.get_token()); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  stop.request_stop();
  EXPECT_EQ(taken.get(), std::nullopt);
  queue_.Add("a");
  EXPECT_EQ(queue_.Get(stop.get_token()), std::nullopt) << "stop goes before work";
}

TEST_F(WorkQueueTest, ReturnsDelayedKeyAtItsTime) {
  queue_.AddAfter("a", seconds(5));
  EXPECT_EQ(Due(), 0U);
  clock_.Advance(Duration(4999));
  EXPECT_EQ(Due(), 0U);
  clock_.Advance(Duration(1));
  EXPECT_EQ(Take(), "a");
  EXPECT_EQ(queue_.delayed(), 0U);
}

TEST_F(WorkQueueTest, WaitingGetWakesAtDueTime) {
  queue_.AddAfter("a", seconds(5));
  auto taken = std::async(std::launch::async, [&] { return queue_.Get({}); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(seconds(5));
  EXPECT_EQ(taken.get(), "a");
}

TEST_F(WorkQueueTest, EarlierOfTwoDelaysWins) {
  queue_.AddAfter("a", seconds(10));
  queue_.AddAfter("a", seconds(5));
  queue_.AddAfter("a", seconds(20));
  EXPECT_EQ(queue_.delayed(), 1U);
  clock_.Advance(seconds(5));
  EXPECT_EQ(Take(), "a");
  queue_.Done("a");
  clock_.Advance(seconds(60));
  EXPECT_EQ(Due(), 0U);
}

TEST_F(WorkQueueTest, EarlierDelayWakesWaitingGet) {
  queue_.AddAfter("late", seconds(100));
  auto taken = std::async(std::launch::async, [&] { return queue_.Get({}); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  queue_.AddAfter("early", seconds(1));
  clock_.Advance(seconds(1));
  EXPECT_EQ(taken.get(), "early");
}

TEST_F(WorkQueueTest, ReturnsDelayedKeysInOrderOfDueTime) {
  queue_.AddAfter("c", seconds(3));
  queue_.AddAfter("a", seconds(1));
  queue_.AddAfter("b", seconds(2));
  for (const char* key : {"a", "b", "c"}) {
    clock_.Advance(seconds(1));
    EXPECT_EQ(Take(), key);
  }
}

TEST_F(WorkQueueTest, ZeroDelayAddsAtOnce) {
  queue_.AddAfter("a", seconds(0));
  queue_.AddAfter("b", seconds(-5));
  EXPECT_EQ(queue_.size(), 2U);
}

TEST_F(WorkQueueTest, KeyDueWhileProcessingIsRequeued) {
  queue_.Add("a");
  EXPECT_EQ(queue_.Get({}), "a");
  queue_.AddAfter("a", seconds(1));
  clock_.Advance(seconds(1));
  EXPECT_EQ(Due(), 0U);
  queue_.Done("a");
  EXPECT_EQ(Take(), "a");
}

TEST_F(WorkQueueTest, BackoffDoublesPerKeyUntilForgotten) {
  const auto delay = [&](const std::string& key) {
    queue_.AddWithBackoff(key);
    int64_t waited = 0;
    while (Due() == 0) {
      clock_.Advance(Duration(5));
      waited += 5;
    }
    Take();
    queue_.Done(key);
    return waited;
  };
  EXPECT_EQ(delay("a"), 5);
  EXPECT_EQ(delay("a"), 10);
  EXPECT_EQ(delay("a"), 20);
  EXPECT_EQ(delay("b"), 5);
  EXPECT_EQ(queue_.Failures("a"), 3);
  queue_.Forget("a");
  EXPECT_EQ(queue_.Failures("a"), 0);
  EXPECT_EQ(delay("a"), 5);
}

TEST_F(WorkQueueTest, BackoffIsLimited) {
  for (int i = 0; i < 200; ++i) {
    queue_.AddWithBackoff("a");
  }
  EXPECT_LE(queue_.Failures("a"), 64);
  queue_.AddWithBackoff("b");
  for (int i = 0; i < 100; ++i) {
    queue_.AddWithBackoff("b");
  }
  clock_.Advance(seconds(300));
  EXPECT_EQ(queue_.delayed(), 2U);
  EXPECT_EQ(Due(), 2U);
}

TEST_F(WorkQueueTest, ShutDownReturnsQueuedKeysAndAcceptsNoMore) {
  queue_.Add("a");
  queue_.AddAfter("delayed", seconds(1));
  queue_.ShutDown();
  queue_.Add("b");
  queue_.AddAfter("c", seconds(0));
  queue_.AddWithBackoff("d");
  clock_.Advance(seconds(10));
  EXPECT_EQ(queue_.Get({}), "a");
  EXPECT_EQ(queue_.Get({}), std::nullopt);
}

TEST_F(WorkQueueTest, ShutDownWakesEveryWaitingGet) {
  std::vector<std::future<std::optional<std::string>>> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(std::async(std::launch::async, [&] { return queue_.Get({}); }));
  }
  ASSERT_TRUE(clock_.AwaitWaiters(3));
  queue_.ShutDown();
  for (auto& each : waiting) {
    EXPECT_EQ(each.get(), std::nullopt);
  }
}

TEST_F(WorkQueueTest, DrainWaitsForProcessingKeys) {
  queue_.Add("a");
  EXPECT_EQ(queue_.Get({}), "a");
  auto drained = std::async(std::launch::async, [&] { return queue_.Drain(seconds(60)); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  queue_.Done("a");
  EXPECT_TRUE(drained.get());
}

TEST_F(WorkQueueTest, DrainWaitsForDirtyKeys) {
  queue_.Add("a");
  EXPECT_EQ(queue_.Get({}), "a");
  queue_.Add("a");
  auto drained = std::async(std::launch::async, [&] { return queue_.Drain(seconds(60)); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  queue_.Done("a");
  EXPECT_EQ(queue_.Get({}), "a");
  queue_.Done("a");
  EXPECT_TRUE(drained.get());
}

TEST_F(WorkQueueTest, DrainGivesUpAtItsLimit) {
  queue_.Add("a");
  EXPECT_EQ(queue_.Get({}), "a");
  auto drained = std::async(std::launch::async, [&] { return queue_.Drain(seconds(5)); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(seconds(5));
  EXPECT_FALSE(drained.get());
}

TEST_F(WorkQueueTest, WorkersNeverProcessAKeyTwiceAtOnce) {
  constexpr int kKeys = 10;
  std::atomic<int> held[kKeys] = {};
  std::atomic<int> worked = 0;
  std::stop_source stop;
  std::vector<std::jthread> workers;
  for (int w = 0; w < 4; ++w) {
    workers.emplace_back([&] {
      while (const auto key = queue_.Get(stop.get_token())) {
        std::atomic<int>& mine = held[std::stoi(*key)];
        EXPECT_EQ(++mine, 1);
        std::this_thread::yield();
        --mine;
        ++worked;
        queue_.Done(*key);
      }
    });
  }
  for (int i = 0; i < 2000; ++i) {
    queue_.Add(std::to_string(i % kKeys));
  }
  EXPECT_TRUE(Await([&] { return queue_.size() == 0; }));
  EXPECT_TRUE(queue_.Drain(seconds(1000)));
  EXPECT_GE(worked, kKeys);
  stop.request_stop();
}

TEST_F(WorkQueueTest, KeysOfOneNamespaceThatHangDelayNoOther) {
  WorkQueue queue(clock_, {}, {.usual = 2, .slow = 8});
  std::mutex mutex;
  std::condition_variable_any wake;
  std::atomic<int> hanging = 0;
  std::atomic<bool> done = false;
  std::stop_source stop;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 10; ++i) {
    workers.emplace_back([&] {
      while (const auto key = queue.Get(stop.get_token())) {
        if (key->starts_with("team/")) {
          ++hanging;
          std::unique_lock lock(mutex);
          wake.wait(lock, stop.get_token(), [] { return false; });
        }
        done = done || *key == "default/a";
        queue.Done(*key);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    queue.Add("team/" + std::to_string(i));
  }
  Await([&] { return hanging == 2; });
  ASSERT_TRUE(clock_.AwaitWaiters(8)) << "the other threads wait";
  queue.Add("default/a");
  EXPECT_EQ(hanging, 2);
  clock_.Advance(NamespaceLanes::kSlowAfter);
  Await([&] { return done.load(); });
  EXPECT_TRUE(done);
  Await([&] { return hanging == 6; });
  EXPECT_EQ(hanging, 6) << "the share of one slow namespace";
  stop.request_stop();
}

}  // namespace
}  // namespace cachewarm::kube
