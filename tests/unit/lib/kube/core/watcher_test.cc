// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/watcher.h"

#include <gtest/gtest.h>

#include "lib/kube/core/error.h"

namespace cachewarm::kube {
namespace {

using std::chrono::seconds;

const absl::Status kBroken = absl::UnavailableError("reset");
const absl::Status kTooLong = absl::ResourceExhaustedError("larger than 64 bytes");
const absl::Status kExpired = absl::OutOfRangeError("expired");

class WatcherTest : public testing::Test {
 protected:
  // The next action after an optional sleep, which is recorded in slept_.
  WatcherAction Next() {
    WatcherAction action = watcher_.Next(now_, 0.0);
    slept_ = Duration(0);
    if (action.type == WatcherActionType::kSleep) {
      slept_ = action.delay;
      now_ += action.delay;
      action = watcher_.Next(now_, 0.0);
    }
    return action;
  }
  void ListAll(const std::string& version) {
    ASSERT_EQ(Next().type, WatcherActionType::kList);
    ASSERT_TRUE(watcher_.OnPage("", version));
  }

  Watcher watcher_;
  MonoTime now_{seconds(5000)};
  Duration slept_{0};
};

TEST_F(WatcherTest, ListsPagesThenWatches) {
  WatcherAction action = Next();
  EXPECT_EQ(action.type, WatcherActionType::kList);
  EXPECT_EQ(action.continue_token, "");
  EXPECT_TRUE(watcher_.IsFirstPage());
  EXPECT_FALSE(watcher_.OnPage("t1", "10"));
  action = Next();
  EXPECT_EQ(action.type, WatcherActionType::kList);
  EXPECT_EQ(action.continue_token, "t1");
  EXPECT_FALSE(watcher_.IsFirstPage());
  EXPECT_TRUE(watcher_.OnPage("", "10"));
  action = Next();
  EXPECT_EQ(action.type, WatcherActionType::kWatch);
  EXPECT_EQ(action.resource_version, "10");
  EXPECT_EQ(slept_, Duration(0));
}

TEST_F(WatcherTest, ResumesFromLastVersion) {
  ListAll("10");
  EXPECT_EQ(Next().resource_version, "10");
  watcher_.OnProgress("12");
  watcher_.OnProgress("");
  now_ += seconds(290);
  watcher_.OnWatchEnd(absl::OkStatus(), now_);
  EXPECT_EQ(Next().resource_version, "12");
  EXPECT_EQ(slept_, Duration(0));
}

TEST_F(WatcherTest, BrokenWatchResumesAfterBackoff) {
  ListAll("10");
  Next();
  watcher_.OnProgress("11");
  watcher_.OnWatchEnd(kBroken, now_);
  const WatcherAction action = Next();
  EXPECT_EQ(action.type, WatcherActionType::kWatch);
  EXPECT_EQ(action.resource_version, "11");
  EXPECT_EQ(slept_, Duration(800));
}

TEST_F(WatcherTest, BackoffDoublesToThirtySecondsAndResetsAfterTwoMinutes) {
  ListAll("10");
  std::vector<int64_t> delays;
  for (int i = 0; i < 8; ++i) {
    Next();
    delays.push_back(slept_.count());
    watcher_.OnWatchEnd(kBroken, now_);
  }
  EXPECT_EQ(delays, (std::vector<int64_t>{0, 800, 1600, 3200, 6400, 12800, 25600, 30000}));
  Next();
  now_ += seconds(121);
  watcher_.OnWatchEnd(kBroken, now_);
  Next();
  EXPECT_EQ(slept_, Duration(800));
}

TEST_F(WatcherTest, JitterShortensTheBackoff) {
  ListAll("10");
  watcher_.Next(now_, 0.0);
  watcher_.OnWatchEnd(kBroken, now_);
  const WatcherAction action = watcher_.Next(now_, 1.0);
  EXPECT_EQ(action.type, WatcherActionType::kSleep);
  EXPECT_EQ(action.delay, Duration(400));
}

TEST_F(WatcherTest, FirstExpiredVersionRelistsAtOnce) {
  ListAll("10");
  Next();
  watcher_.OnWatchEnd(kExpired, now_);
  WatcherAction action = Next();
  EXPECT_EQ(action.type, WatcherActionType::kList);
  EXPECT_EQ(action.continue_token, "");
  EXPECT_EQ(slept_, Duration(0));
  // Repeated expiry must not cause a hot loop.
  watcher_.OnPage("", "20");
  Next();
  watcher_.OnWatchEnd(kExpired, now_);
  action = Next();
  EXPECT_EQ(action.type, WatcherActionType::kList);
  EXPECT_GE(slept_, Duration(800));
}

TEST_F(WatcherTest, FailedListStartsOver) {
  Next();
  watcher_.OnPage("t1", "10");
  Next();
  watcher_.OnListFailure(kBroken, now_);
  const WatcherAction action = Next();
  EXPECT_EQ(action.type, WatcherActionType::kList);
  EXPECT_EQ(action.continue_token, "");
  EXPECT_TRUE(watcher_.IsFirstPage());
  EXPECT_EQ(slept_, Duration(800));
}

TEST_F(WatcherTest, FirstExpiredContinueTokenRestartsAtOnce) {
  Next();
  watcher_.OnPage("t1", "10");
  Next();
  watcher_.OnListFailure(kExpired, now_);
  EXPECT_EQ(Next().continue_token, "");
  EXPECT_EQ(slept_, Duration(0));
  watcher_.OnPage("t2", "11");
  Next();
  watcher_.OnListFailure(kExpired, now_);
  Next();
  EXPECT_GE(slept_, Duration(800));
}

TEST_F(WatcherTest, OversizedPageIsRequestedAgainWithFewerItems) {
  EXPECT_EQ(Next().page_items, 500);
  watcher_.OnPage("t1", "10");
  for (const int items : {500, 62, 7}) {
    EXPECT_EQ(Next().page_items, items);
    watcher_.OnListFailure(kTooLong, now_);
    const WatcherAction action = Next();
    EXPECT_EQ(action.continue_token, "t1");
    EXPECT_FALSE(watcher_.IsFirstPage());
    EXPECT_EQ(slept_, Duration(0));
  }
  EXPECT_EQ(Next().page_items, 1);
}

TEST_F(WatcherTest, PageSizeGrowsBackToItsLimit) {
  Next();
  watcher_.OnListFailure(kTooLong, now_);
  for (const int items : {62, 124, 248, 496, 500, 500}) {
    EXPECT_EQ(Next().page_items, items);
    watcher_.OnPage("more", "10");
  }
}

TEST_F(WatcherTest, OversizedItemCountsAsFailure) {
  watcher_ = Watcher(BackoffPolicy{}, 1);
  Next();
  watcher_.OnPage("t1", "10");
  Next();
  watcher_.OnListFailure(kTooLong, now_);
  EXPECT_EQ(Next().continue_token, "");
  EXPECT_GT(slept_, Duration(0));
}

TEST_F(WatcherTest, OverloadDoesNotShrinkPages) {
  Next();
  watcher_.OnListFailure(ToStatus({.code = 429, .message = "slow down"}), now_);
  EXPECT_EQ(Next().page_items, 500);
  EXPECT_EQ(slept_, Duration(800));
}

TEST_F(WatcherTest, WatchWithoutEventsCountsAsFailure) {
  ListAll("10");
  Next();
  watcher_.OnWatchEnd(absl::OkStatus(), now_ + Duration(20));
  Next();
  EXPECT_EQ(slept_, Duration(800));
  watcher_.OnProgress("11");
  watcher_.OnWatchEnd(absl::OkStatus(), now_ + Duration(20));
  Next();
  EXPECT_EQ(slept_, Duration(0));
}

TEST_F(WatcherTest, UnreadableEventRelistsWithBackoff) {
  ListAll("10");
  Next();
  watcher_.OnWatchEnd(absl::InvalidArgumentError("noise"), now_);
  EXPECT_EQ(Next().type, WatcherActionType::kList);
  EXPECT_EQ(slept_, Duration(800));
}

}  // namespace
}  // namespace cachewarm::kube
