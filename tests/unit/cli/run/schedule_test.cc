// SPDX-License-Identifier: Apache-2.0
#include "cli/run/schedule.h"

#include "gtest/gtest.h"

namespace cachewarm::cli {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const TreeSnapshot kOne = {{"a", {1, 1}}};
const TreeSnapshot kTwo = {{"a", {1, 1}}, {"b", {1, 1}}};
constexpr MonoTime kStart{seconds(1000)};

TEST(Schedule, PublishesOnceTheTreeWasQuiet) {
  PublishSchedule schedule({.quiet = seconds(10)}, 0);
  EXPECT_FALSE(schedule.Observe({}, kStart));
  EXPECT_FALSE(schedule.Observe({}, kStart + seconds(60))) << "there is nothing to publish";
  EXPECT_FALSE(schedule.Observe(kOne, kStart + seconds(61)));
  EXPECT_FALSE(schedule.Observe(kOne, kStart + seconds(70)));
  EXPECT_FALSE(schedule.Observe(kTwo, kStart + seconds(71))) << "a file was written";
  EXPECT_FALSE(schedule.Observe(kTwo, kStart + seconds(80)));
  EXPECT_TRUE(schedule.Observe(kTwo, kStart + seconds(81)));
}

TEST(Schedule, WaitsForEverySignalOfReadiness) {
  PublishSchedule schedule({.by_url = true, .by_log = true, .quiet = seconds(10)}, 0);
  EXPECT_FALSE(schedule.Observe(kOne, kStart));
  EXPECT_FALSE(schedule.Observe(kOne, kStart + seconds(100)));
  schedule.UrlAnswered();
  EXPECT_FALSE(schedule.IsReady());
  EXPECT_FALSE(schedule.Observe(kOne, kStart + seconds(101)));
  schedule.LogMatched();
  EXPECT_TRUE(schedule.IsReady());
  EXPECT_TRUE(schedule.Observe(kOne, kStart + seconds(102))) << "the tree was quiet before";
}

TEST(Schedule, RandomDelaySpreadsReplicas) {
  PublishSchedule first({.quiet = seconds(10)}, 0.1);
  PublishSchedule last({.quiet = seconds(10)}, 0.9);
  for (PublishSchedule* each : {&first, &last}) {
    EXPECT_FALSE(each->Observe(kOne, kStart));
    EXPECT_FALSE(each->Observe(kOne, kStart + seconds(10)));
  }
  EXPECT_TRUE(first.Observe(kOne, kStart + seconds(11)));
  EXPECT_FALSE(last.Observe(kOne, kStart + seconds(18)));
  EXPECT_TRUE(last.Observe(kOne, kStart + seconds(19)));
}

TEST(Schedule, PublishesAgainOnlyChangesAndAfterTenMinutes) {
  PublishSchedule schedule({.quiet = seconds(10)}, 0);
  ASSERT_FALSE(schedule.Observe(kOne, kStart));
  ASSERT_TRUE(schedule.Observe(kOne, kStart + seconds(10)));
  schedule.Published(kOne, kStart + seconds(10));
  EXPECT_FALSE(schedule.Observe(kOne, kStart + minutes(60)));
  schedule.Published(kOne, kStart + minutes(60));
  EXPECT_FALSE(schedule.Observe(kTwo, kStart + minutes(61)));
  EXPECT_FALSE(schedule.Observe(kTwo, kStart + minutes(69)));
  EXPECT_TRUE(schedule.Observe(kTwo, kStart + minutes(70)));
}

TEST(Schedule, FailuresAreRetriedEverMoreRarely) {
  PublishSchedule schedule({.quiet = seconds(10)}, 0);
  ASSERT_FALSE(schedule.Observe(kOne, kStart));
  MonoTime now = kStart + seconds(10);
  for (const auto wait : {minutes(1), minutes(2), minutes(4), minutes(8), minutes(16), minutes(32),
                          minutes(60), minutes(60)}) {
    ASSERT_TRUE(schedule.Observe(kOne, now));
    schedule.Failed(now);
    EXPECT_FALSE(schedule.Observe(kOne, now + wait - seconds(1))) << wait.count();
    now += wait;
  }
  ASSERT_TRUE(schedule.Observe(kOne, now));
  schedule.Published(kOne, now);
  schedule.Failed(now);
  EXPECT_FALSE(schedule.Observe(kTwo, now + seconds(30)));
  EXPECT_TRUE(schedule.Observe(kTwo, now + minutes(1))) << "a success resets the delay";
}

}  // namespace
}  // namespace cachewarm::cli
