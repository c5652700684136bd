// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/client/slow_namespace_limiter.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>

#include "tests/fakes/await.h"
#include "tests/fakes/fake_clock.h"

namespace cachewarm::gate {
namespace {

using std::chrono::seconds;

class SlowNamespaceLimiterTest : public ::testing::Test {
 protected:
  // Waits until cancelled, as a client does.
  static absl::Status BlockUntilStop(std::stop_token stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait(lock, stop, [] { return false; });
    return absl::CancelledError("stopped");
  }

  absl::Status Quick(const std::string& ns) {
    return limiter_.Run(ns, {}, [](std::stop_token) { return absl::OkStatus(); });
  }
  // A patch that returns `status` after a while.
  absl::Status Slow(const std::string& ns, Duration after, const absl::Status& status) {
    return limiter_.Run(ns, {}, [&](std::stop_token) {
      clock_.Advance(after);
      return status;
    });
  }
  std::future<absl::Status> BeginToHang(const std::string& ns, std::stop_token stop = {}) {
    return std::async(std::launch::async,
                      [this, ns, stop] { return limiter_.Run(ns, stop, BlockUntilStop); });
  }
  void CutShort(std::future<absl::Status>& hanging, Duration limit) {
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(limit - Duration(1));
    EXPECT_EQ(hanging.wait_for(seconds(0)), std::future_status::timeout);
    clock_.Advance(Duration(1));
    EXPECT_TRUE(absl::IsDeadlineExceeded(hanging.get()));
  }
  void MakeSlow(const std::string& ns) {
    EXPECT_FALSE(Slow(ns, seconds(1), absl::InternalError("failed calling webhook")).ok());
  }

  fakes::FakeClock clock_;
  SlowNamespaceLimiter limiter_{clock_, {.at_once = 1, .limit = seconds(30)}};
};

TEST_F(SlowNamespaceLimiterTest, HangingPatchIsCancelledAtTheLimit) {
  std::future<absl::Status> hanging = BeginToHang("team");
  CutShort(hanging, seconds(3));
}

TEST_F(SlowNamespaceLimiterTest, LimitsPatchesOfEachSlowNamespace) {
  MakeSlow("team");
  MakeSlow("also");
  std::future<absl::Status> hanging = BeginToHang("team");
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_TRUE(absl::IsAborted(Quick("team")));
  std::future<absl::Status> other = BeginToHang("also");
  ASSERT_TRUE(clock_.AwaitWaiters(2)) << "another slow namespace has its own limit";
  EXPECT_TRUE(absl::IsAborted(Quick("also")));
  EXPECT_TRUE(Quick("default").ok());
  CutShort(hanging, seconds(30));
  EXPECT_TRUE(absl::IsDeadlineExceeded(other.get()));
  EXPECT_TRUE(Quick("team").ok()) << "a slot is free again";
}

TEST_F(SlowNamespaceLimiterTest, UsualLimitIsConfigurable) {
  SlowNamespaceLimiter patient(clock_, {.at_once = 1, .limit = seconds(30), .usual = seconds(20)});
  auto hanging =
      std::async(std::launch::async, [&] { return patient.Run("team", {}, BlockUntilStop); });
  CutShort(hanging, seconds(20));
}

TEST_F(SlowNamespaceLimiterTest, QuickResponseEndsTheLimit) {
  MakeSlow("team");
  EXPECT_TRUE(Quick("team").ok());
  std::future<absl::Status> one = BeginToHang("team");
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_TRUE(Quick("team").ok());
  CutShort(one, seconds(3));
}

TEST_F(SlowNamespaceLimiterTest, SlowFailureMarksAndQuickPatchClears) {
  EXPECT_TRUE(Slow("team", Duration(2'900), absl::OkStatus()).ok());
  std::future<absl::Status> first = BeginToHang("team");
  CutShort(first, seconds(3));
  EXPECT_TRUE(Slow("team", seconds(10), absl::OkStatus()).ok()) << "it may take longer now";
  std::future<absl::Status> second = BeginToHang("team");
  CutShort(second, seconds(30));
}

TEST_F(SlowNamespaceLimiterTest, ForgetsIdleNamespace) {
  MakeSlow("team");
  clock_.Advance(std::chrono::minutes(11));
  EXPECT_TRUE(Quick("default").ok());
  std::future<absl::Status> hanging = BeginToHang("team");
  CutShort(hanging, seconds(3));
}

TEST_F(SlowNamespaceLimiterTest, StopDoesNotMarkNamespaceSlow) {
  std::stop_source stop;
  std::future<absl::Status> hanging = BeginToHang("team", stop.get_token());
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(seconds(2));
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(hanging.get()));
  std::future<absl::Status> next = BeginToHang("team");
  CutShort(next, seconds(3));
}

}  // namespace
}  // namespace cachewarm::gate
