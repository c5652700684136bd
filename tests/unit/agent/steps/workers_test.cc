// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <semaphore>
#include <thread>

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

// Posts a job that runs until it is requested to stop, waits until it runs, and queues another one.
// Each of them adds 1 to `run` at its end.
void RunOneAndQueueOne(Workers& workers, std::atomic<int>& run) {
  const auto begun = std::make_shared<std::binary_semaphore>(0);
  ASSERT_TRUE(workers.Post([begun, &run](std::stop_token stop) {
    begun->release();
    while (!stop.stop_requested()) {
      std::this_thread::yield();
    }
    ++run;
  }));
  begun->acquire();
  ASSERT_TRUE(workers.Post([&run](std::stop_token) { ++run; }));
}

TEST(Workers, StopEndsRunningJobAndDropsQueue) {
  std::atomic<int> run = 0;
  Workers workers(1, 10);
  RunOneAndQueueOne(workers, run);
  workers.Stop();
  EXPECT_EQ(run, 1);
  EXPECT_FALSE(workers.Post([](std::stop_token) {}));
  workers.Stop();
}

TEST(Workers, DestructionDropsTheQueue) {
  std::atomic<int> run = 0;
  {
    Workers workers(1, 10);
    RunOneAndQueueOne(workers, run);
  }
  EXPECT_EQ(run, 1);
}

}  // namespace
}  // namespace cachewarm::agent
