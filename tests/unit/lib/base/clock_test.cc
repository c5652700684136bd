// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/fakes/fake_clock.h"

namespace cachewarm {
namespace {

WallTime At(const std::string& text) {
  const absl::StatusOr<WallTime> time = ParseTime(text);
  EXPECT_TRUE(time.ok()) << time.status();
  return time.value_or(WallTime{});
}

TEST(FormatTime, WritesWholeSecondsInUtc) {
  EXPECT_EQ(FormatTime(WallTime{}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatTime(WallTime(Duration(999))), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatTime(At("2026-11-21T08:09:10Z")), "2026-11-21T08:09:10Z");
  EXPECT_EQ(FormatTime(At("2024-02-29T23:59:59.999Z")), "2024-02-29T23:59:59Z");
  EXPECT_EQ(FormatTime(WallTime(Duration(-1))), "1969-12-31T23:59:59Z");
}

TEST(FormatMicroTime, WritesMilliseconds) {
  EXPECT_EQ(FormatMicroTime(At("2026-11-21T08:09:10.123Z")), "2026-11-21T08:09:10.123000Z");
  EXPECT_EQ(FormatMicroTime(WallTime{}), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(FormatMicroTime(WallTime(Duration(-1))), "1969-12-31T23:59:59.999000Z");
}

TEST(ParseTime, RoundTripsFormattedTimes) {
  for (const int64_t ms : {int64_t{0}, int64_t{1}, int64_t{951'782'400'000},
                           int64_t{1'795'000'000'123}, int64_t{253'402'300'799'999}}) {
    const WallTime time{Duration(ms)};
    EXPECT_EQ(At(FormatMicroTime(time)), time);
    EXPECT_EQ(At(FormatTime(time)), std::chrono::floor<std::chrono::seconds>(time));
  }
}

TEST(ParseTime, ReadsFractionsOfAnyLength) {
  EXPECT_EQ(At("1970-01-01T00:00:00.1Z"), WallTime(Duration(100)));
  EXPECT_EQ(At("1970-01-01T00:00:00.12Z"), WallTime(Duration(120)));
  EXPECT_EQ(At("1970-01-01T00:00:00.123456Z"), WallTime(Duration(123)));
  EXPECT_EQ(At("1970-01-01T00:00:00.999999999Z"), WallTime(Duration(999)));
}

TEST(ParseTime, ReadsOffsets) {
  EXPECT_EQ(At("2026-11-21T08:09:10+00:00"), At("2026-11-21T08:09:10Z"));
  EXPECT_EQ(At("2026-11-21T08:09:10-00:00"), At("2026-11-21T08:09:10Z"));
  EXPECT_EQ(At("2026-11-21T08:09:10.5+02:30"), At("2026-11-21T05:39:10.5Z"));
  EXPECT_EQ(At("2026-11-21T20:09:10-23:59"), At("2026-11-22T20:08:10Z"));
  EXPECT_EQ(FormatTime(At("9999-12-31T23:59:59+00:01")), "9999-12-31T23:58:59Z");
}

TEST(ParseTime, RejectsMalformedText) {
  for (const char* bad : {"",
                          "Z",
                          "2026",
                          "2026-11-21",
                          "2026-11-21T08:09:10",
                          "2026-11-21T08:09:10+24:00",
                          "2026-11-21T08:09:10-00:60",
                          "2026-11-21T08:09:10+2:00",
                          "2026-11-21T08:09:10+0200",
                          "2026-11-21T08:09:10+02-00",
                          "2026-11-21T08:09:10+02:00Z",
                          "2026-11-21T08:09:10Z+02:00",
                          "+02:00",
                          "0000-01-01T00:00:00+00:01",
                          "9999-12-31T23:59:59-00:01",
                          "9999-12-31T23:59:60Z",
                          "2026-11-21 08:09:10Z",
                          "2026-11-21t08:09:10z",
                          "2026-13-01T00:00:00Z",
                          "2026-02-29T00:00:00Z",
                          "2026-00-10T00:00:00Z",
                          "2026-01-00T00:00:00Z",
                          "2026-01-01T24:00:00Z",
                          "2026-01-01T00:60:00Z",
                          "2026-01-01T00:00:61Z",
                          "2026-01-01T00:00:00.Z",
                          "2026-01-01T00:00:00.1234567890Z",
                          "2026-01-01T00:00:00.1aZ",
                          "2026-01-01T00:00:00ZZ",
                          " 2026-01-01T00:00:00Z",
                          "-026-01-01T00:00:00Z",
                          "2026/01/01T00:00:00Z",
                          "2026-01-01T00-00-00Z",
                          "null"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTime(bad).status())) << bad;
  }
}

TEST(ParseTime, ReadsALeapSecond) {
  EXPECT_EQ(At("2016-12-31T23:59:60Z"), At("2017-01-01T00:00:00Z"));
}

TEST(FormatDuration, FormatsHumanReadableDurations) {
  const std::pair<int64_t, const char*> cases[] = {
      {0, "0ms"},
      {850, "850ms"},
      {999, "999ms"},
      {1000, "1s"},
      {59'999, "59s"},
      {60'000, "1m00s"},
      {245'000, "4m05s"},
      {3'599'999, "59m59s"},
      {3'600'000, "1h00m"},
      {13'260'000, "3h41m"},
      {86'399'999, "23h59m"},
      {86'400'000, "1d0h"},
      {183'600'000, "2d3h"},
      {-850, "-850ms"},
      {-13'260'000, "-3h41m"},
  };
  for (const auto& [ms, text] : cases) {
    EXPECT_EQ(FormatDuration(Duration(ms)), text);
  }
  EXPECT_FALSE(FormatDuration(Duration::max()).empty());
  EXPECT_EQ(FormatDuration(Duration::min()).front(), '-');
}

TEST(SystemClock, NeverGoesBack) {
  const MonoTime before = SystemClock().Monotonic();
  EXPECT_LE(before, SystemClock().Monotonic());
  EXPECT_GT(SystemClock().Now(), At("2025-01-01T00:00:00Z"));
}

TEST(SystemClock, WaitEndsAtTheDeadline) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  const MonoTime deadline = SystemClock().Monotonic() + Duration(5);
  while (SystemClock().Monotonic() < deadline) {
    SystemClock().WaitUntil(lock, wake, deadline, {});
  }
  EXPECT_TRUE(lock.owns_lock());
}

TEST(SystemClock, WaitEndsWhenNotified) {
  std::mutex mutex;
  std::condition_variable_any wake;
  bool ready = false;
  std::unique_lock lock(mutex);
  std::jthread notifier([&] {
    const std::lock_guard guard(mutex);
    ready = true;
    wake.notify_all();
  });
  // The largest deadline must not overflow.
  while (!ready) {
    SystemClock().WaitUntil(lock, wake, MonoTime::max(), {});
  }
  EXPECT_TRUE(lock.owns_lock());
}

TEST(SystemClock, WaitEndsWhenStopped) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::stop_source stop;
  std::unique_lock lock(mutex);
  std::jthread stopper([&] { stop.request_stop(); });
  while (!stop.stop_requested()) {
    SystemClock().WaitUntil(lock, wake, SystemClock().Monotonic() + std::chrono::hours(1),
                            stop.get_token());
  }
  SystemClock().WaitUntil(lock, wake, SystemClock().Monotonic() + std::chrono::hours(1),
                          stop.get_token());
  EXPECT_TRUE(lock.owns_lock());
}

TEST(SleepFor, ReturnsFalseIfStopped) {
  EXPECT_TRUE(SleepFor(SystemClock(), Duration(2), {}));
  EXPECT_TRUE(SleepFor(SystemClock(), Duration(0), {}));
  EXPECT_TRUE(SleepFor(SystemClock(), Duration(-5), {}));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(SleepFor(SystemClock(), std::chrono::hours(1), stop.get_token()));
}

TEST(SleepFor, UsesTheGivenClock) {
  fakes::FakeClock clock;
  std::atomic<bool> slept = false;
  std::jthread sleeper([&](std::stop_token stop) {
    slept = SleepFor(clock, std::chrono::hours(1), std::move(stop));
  });
  ASSERT_TRUE(clock.AwaitWaiters(1));
  clock.Advance(std::chrono::minutes(59));
  ASSERT_TRUE(clock.AwaitWaiters(1));
  EXPECT_FALSE(slept);
  clock.Advance(std::chrono::minutes(1));
  sleeper.join();
  EXPECT_TRUE(slept);
}

TEST(SleepFor, StopsWhileSleeping) {
  fakes::FakeClock clock;
  std::atomic<bool> slept = true;
  std::jthread sleeper([&](std::stop_token stop) {
    slept = SleepFor(clock, std::chrono::hours(1), std::move(stop));
  });
  ASSERT_TRUE(clock.AwaitWaiters(1));
  sleeper.request_stop();
  sleeper.join();
  EXPECT_FALSE(slept);
}

}  // namespace
}  // namespace cachewarm
