// SPDX-License-Identifier: Apache-2.0
#include "lib/base/fan_out.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>

namespace cachewarm {
namespace {

TEST(FanOut, CallsEachIndexOnce) {
  for (const size_t width : {1U, 3U, 64U}) {
    std::mutex mutex;
    std::multiset<size_t> seen;
    FanOut(50, width, {}, [&](size_t i) {
      std::lock_guard lock(mutex);
      seen.insert(i);
    });
    EXPECT_EQ(seen.size(), 50U) << width;
    EXPECT_EQ(std::set<size_t>(seen.begin(), seen.end()).size(), 50U) << width;
  }
}

TEST(FanOut, ReturnsAtOnceWithoutWork) {
  FanOut(0, 8, {}, [](size_t) { FAIL(); });
}

TEST(FanOut, RunsUpToWidthInParallel) {
  std::mutex mutex;
  std::condition_variable all_in;
  int running = 0;
  int most = 0;
  FanOut(4, 4, {}, [&](size_t) {
    std::unique_lock lock(mutex);
    most = std::max(most, ++running);
    all_in.notify_all();
    all_in.wait_for(lock, std::chrono::seconds(20), [&] { return most == 4; });
    --running;
  });
  EXPECT_EQ(most, 4);
}

TEST(FanOut, StartsNothingMoreAfterStop) {
  std::stop_source stop;
  int calls = 0;
  FanOut(100, 1, stop.get_token(), [&](size_t i) {
    ++calls;
    if (i == 4) {
      stop.request_stop();
    }
  });
  EXPECT_EQ(calls, 5);
}

}  // namespace
}  // namespace cachewarm
