// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <semaphore>

namespace cachewarm::agent {
namespace {

TEST(Workers, RunEveryAcceptedJob) {
  std::latch done(50);
  Workers workers(3, 100);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(workers.Post([&](std::stop_token) { done.count_down(); }));
  }
  done.wait();
}

TEST(Workers, RejectJobsAboveQueueLimit) {
  std::binary_semaphore begun(0);
  std::binary_semaphore go(0);
  Workers workers(1, 2);
  ASSERT_TRUE(workers.Post([&](std::stop_token) {
    begun.release();
    go.acquire();
  }));
  begun.acquire();
  EXPECT_TRUE(workers.Post([](std::stop_token) {}));
  EXPECT_TRUE(workers.Post([](std::stop_token) {}));
  EXPECT_FALSE(workers.Post([](std::stop_token) {}));
  go.release();
}

TEST(Workers, StopEndsRunningJobAndDropsQueue) {
  std::binary_semaphore begun(0);
  std::atomic<int> run = 0;
  Workers workers(1, 10);
  ASSERT_TRUE(workers.Post([&](std::stop_token stop) {
    begun.release();
    while (!stop.stop_requested()) {
      std::this_thread::yield();
    }
    ++run;
  }));
  begun.acquire();
  ASSERT_TRUE(workers.Post([&](std::stop_token) { ++run; }));
  workers.Stop();
  EXPECT_EQ(run, 1);
  EXPECT_FALSE(workers.Post([](std::stop_token) {}));
  workers.Stop();
}

TEST(Workers, DestructionDropsTheQueue) {
  std::binary_semaphore begun(0);
  std::atomic<int> run = 0;
  {
    Workers workers(1, 10);
    ASSERT_TRUE(workers.Post([&](std::stop_token stop) {
      begun.release();
      while (!stop.stop_requested()) {
        std::this_thread::yield();
      }
      ++run;
    }));
    begun.acquire();
    ASSERT_TRUE(workers.Post([&](std::stop_token) { ++run; }));
  }
  EXPECT_EQ(run, 1);
}

}  // namespace
}  // namespace cachewarm::agent
