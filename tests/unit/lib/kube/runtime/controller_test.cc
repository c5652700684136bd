// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/controller.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "lib/codec/json_value.h"
#include "lib/kube/core/error.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"

namespace cachewarm::kube {
namespace {

using fakes::Await;
using std::chrono::seconds;

class ControllerTest : public testing::Test {
 protected:
  // Runs a controller until the result goes out of scope. Captured variables must outlive it.
  [[nodiscard]] std::jthread Start(Reconcile reconcile, ControllerOptions options = {}) {
    options.name = "test";
    options.on_reconcile = [this](std::string_view result, Duration) {
      std::lock_guard lock(mutex_);
      ++results_[std::string(result)];
    };
    controller_.emplace(queue_, clock_, log_, std::move(options), std::move(reconcile));
    return std::jthread([this](std::stop_token stop) { controller_->Run(stop); });
  }
  int Results(const std::string& result) {
    std::lock_guard lock(mutex_);
    return results_[result];
  }
  // Runs one reconcile that returns `outcome`; true if its key is requeued exactly after `delay`.
  bool ComesBackAfter(Duration delay, const absl::StatusOr<Outcome>& outcome) {
    std::atomic<int> runs = 0;
    std::jthread running =
        Start([&](const std::string&, std::stop_token) -> absl::StatusOr<Outcome> {
          return ++runs == 1 ? outcome : Outcome();
        });
    queue_.Add("key");
    EXPECT_TRUE(Await([&] { return runs == 1 && queue_.delayed() == 1; }));
    EXPECT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(delay - Duration(1));
    EXPECT_TRUE(clock_.AwaitWaiters(1));
    const bool too_early = runs != 1 || queue_.delayed() != 1;
    clock_.Advance(Duration(1));
    const bool came = Await([&] { return Results("success") == 1; });
    return came && !too_early;
  }

  fakes::FakeClock clock_;
  fakes::MemoryLog log_;
  WorkQueue queue_{clock_};
  std::mutex mutex_;
  std::map<std::string, int> results_;
  std::optional<Controller> controller_;
};

TEST_F(ControllerTest, ExceptionFailsOnlyItsKey) {
  std::jthread running =
      Start([&](const std::string& key, std::stop_token) -> absl::StatusOr<Outcome> {
        return key == "poison" ? Outcome{Duration(codec::Json("text").at("x").get<int>())}
                               : Outcome();
      });
  queue_.Add("poison");
  queue_.Add("other");
  EXPECT_TRUE(Await([&] { return Results("success") == 1 && Results("terminal") == 1; }));
  ASSERT_EQ(log_.warnings().size(), 1U);
}

TEST_F(ControllerTest, ReconcilesEveryKey) {
  std::mutex mutex;
  std::set<std::string> seen;
  std::jthread running =
      Start([&](const std::string& key, std::stop_token) -> absl::StatusOr<Outcome> {
        std::lock_guard lock(mutex);
        seen.insert(key);
        return Outcome();
      });
  queue_.Add("a/b");
  queue_.Add("c");
  EXPECT_TRUE(Await([&] { return Results("success") == 2; }));
  EXPECT_EQ(seen, (std::set<std::string>{"a/b", "c"}));
  EXPECT_TRUE(log_.warnings().empty());
}

TEST_F(ControllerTest, RequeuesAfterRequestedDelay) {
  EXPECT_TRUE(ComesBackAfter(seconds(3), Outcome{.requeue_after = seconds(3)}));
  EXPECT_EQ(Results("requeue"), 1);
}

TEST_F(ControllerTest, RequeuesConflictAtOnceWithoutLogging) {
  EXPECT_TRUE(ComesBackAfter(Duration(5), absl::AbortedError("conflict")));
  EXPECT_EQ(Results("retry"), 1);
  EXPECT_TRUE(log_.warnings().empty());
}

TEST_F(ControllerTest, UnavailableServerIsLoggedAndBacksOff) {
  EXPECT_TRUE(ComesBackAfter(Duration(5), absl::UnavailableError("down")));
  EXPECT_EQ(log_.warnings(), (std::vector<std::string>{"reconcile failed"}));
}

TEST_F(ControllerTest, HonorsRetryAfter) {
  EXPECT_TRUE(ComesBackAfter(seconds(4), ToStatus({.code = 429, .retry_after = seconds(4)})));
}

TEST_F(ControllerTest, ResourceExhaustedRetriesAfterASecond) {
  EXPECT_TRUE(ComesBackAfter(seconds(1), absl::ResourceExhaustedError("full")));
}

TEST_F(ControllerTest, TerminalErrorWaitsForAChange) {
  EXPECT_TRUE(ComesBackAfter(seconds(300), absl::FailedPreconditionError("no such workload")));
  EXPECT_EQ(Results("terminal"), 1);
}

TEST_F(ControllerTest, BackoffGrowsAndResetsOnSuccess) {
  std::atomic<int> runs = 0;
  std::jthread running = Start([&](const std::string&, std::stop_token) -> absl::StatusOr<Outcome> {
    if (++runs <= 3) {
      return absl::UnavailableError("down");
    }
    return Outcome();
  });
  queue_.Add("key");
  std::vector<int> failures;
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(Await([&] { return runs == run && queue_.delayed() == 1; }));
    failures.push_back(queue_.Failures("key"));
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(seconds(1));
  }
  EXPECT_EQ(failures, (std::vector<int>{1, 2, 3}));
  ASSERT_TRUE(Await([&] { return Results("success") == 1; }));
  EXPECT_EQ(queue_.Failures("key"), 0);
}

TEST_F(ControllerTest, RunsEachKeyOnceAndUpToWorkerLimit) {
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  std::atomic<int> same = 0;
  std::jthread running = Start(
      [&](const std::string& key, std::stop_token) -> absl::StatusOr<Outcome> {
        most = std::max(most.load(), ++at_once);
        if (key == "same") {
          EXPECT_EQ(++same, 1);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (key == "same") {
          --same;
        }
        --at_once;
        return Outcome();
      },
      {.workers = 3});
  for (int i = 0; i < 60; ++i) {
    queue_.Add("same");
    queue_.Add(std::to_string(i));
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  EXPECT_TRUE(Await([&] { return queue_.size() == 0 && at_once == 0; }));
  EXPECT_LE(most, 3);
}

TEST_F(ControllerTest, StopCancelsRunningReconciles) {
  std::atomic<bool> entered = false;
  std::jthread running =
      Start([&](const std::string&, std::stop_token stop) -> absl::StatusOr<Outcome> {
        entered = true;
        EXPECT_TRUE(Await([&] { return stop.stop_requested(); }));
        return absl::CancelledError("stopped");
      });
  queue_.Add("key");
  queue_.Add("never");
  ASSERT_TRUE(Await([&] { return entered.load(); }));
  const auto began = std::chrono::steady_clock::now();
  running.request_stop();
  running.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(10));
  EXPECT_EQ(Results("success"), 1);
}

}  // namespace
}  // namespace cachewarm::kube
