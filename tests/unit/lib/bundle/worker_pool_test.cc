// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/worker_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fakes/await.h"

namespace cachewarm::bundle {
namespace {

constexpr std::array kThreadCounts = {1, 2, 3, 8};

TEST(WorkerPool, RunsEveryJobOnce) {
  for (const int threads : kThreadCounts) {
    constexpr int kJobs = 100;
    std::array<std::atomic<int>, kJobs> ran{};
    std::atomic<size_t> highest_worker = 0;
    WorkerPool pool(threads);
    for (std::atomic<int>& each : ran) {
      pool.Post([&](size_t worker) {
        ++each;
        for (size_t seen = highest_worker; seen < worker;) {
          highest_worker.compare_exchange_weak(seen, worker);
        }
        return absl::OkStatus();
      });
    }
    ASSERT_TRUE(pool.Wait(kJobs - 1).ok());
    EXPECT_TRUE(std::all_of(ran.begin(), ran.end(), [](int times) { return times == 1; }));
    EXPECT_LT(highest_worker, static_cast<size_t>(threads));
  }
}

TEST(WorkerPool, WaitIncludesEarlierJobs) {
  for (const int threads : kThreadCounts) {
    std::atomic<int> ended = 0;
    WorkerPool pool(threads);
    for (int job = 0; job < 50; ++job) {
      pool.Post([&](size_t) {
        ++ended;
        return absl::OkStatus();
      });
      if (job % 7 == 0) {
        ASSERT_TRUE(pool.Wait(job).ok());
        EXPECT_EQ(ended, job + 1);
      }
    }
  }
}

TEST(WorkerPool, JobMayWaitForEarlierOnes) {
  for (const int threads : kThreadCounts) {
    std::string order;  // jobs take turns to write it
    WorkerPool pool(threads);
    for (int job = 0; job < 26; ++job) {
      pool.Post([&, job](size_t) {
        const absl::Status earlier = pool.Wait(job - 1);
        order += static_cast<char>('a' + job);
        return earlier;
      });
    }
    ASSERT_TRUE(pool.Wait(25).ok());
    EXPECT_EQ(order, "abcdefghijklmnopqrstuvwxyz");
  }
}

TEST(WorkerPool, ReturnsErrorOfTheFirstFailedJob) {
  for (const int threads : kThreadCounts) {
    WorkerPool pool(threads);
    std::atomic<bool> later_failed = false;
    pool.Post([&](size_t) {
      // With several threads the later job fails first.
      if (threads > 1) {
        EXPECT_TRUE(fakes::Await([&] { return later_failed.load(); }));
      }
      return absl::DataLossError("first");
    });
    pool.Post([&](size_t) {
      later_failed = true;
      return absl::InternalError("second");
    });
    EXPECT_EQ(pool.Wait(1), absl::DataLossError("first"));
    EXPECT_EQ(pool.Wait(0), absl::DataLossError("first"));
  }
}

TEST(WorkerPool, StartsNoJobAfterAFailure) {
  for (const int threads : kThreadCounts) {
    WorkerPool pool(threads);
    pool.Post([](size_t) { return absl::DataLossError("bad"); });
    EXPECT_FALSE(pool.Wait(0).ok());
    std::atomic<bool> began = false;
    pool.Post([&](size_t) {
      began = true;
      return absl::OkStatus();
    });
    EXPECT_TRUE(absl::IsDataLoss(pool.Wait(1)));
    EXPECT_FALSE(began);
  }
}

TEST(WorkerPool, WaitForJobBeforeAFailureSucceeds) {
  WorkerPool pool(2);
  pool.Post([](size_t) { return absl::OkStatus(); });
  pool.Post([](size_t) { return absl::DataLossError("bad"); });
  EXPECT_FALSE(pool.Wait(1).ok());
  EXPECT_TRUE(pool.Wait(0).ok());
  EXPECT_TRUE(pool.Wait(-1).ok());
}

TEST(WorkerPool, DestructorWaitsForRunningJobsOnly) {
  std::atomic<bool> begun = false;
  std::atomic<bool> go_on = false;
  std::atomic<bool> ended = false;
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> by_jobs = held;
  std::jthread release;
  {
    WorkerPool pool(1);
    pool.Post([&](size_t) {
      begun = true;
      EXPECT_TRUE(fakes::Await([&] { return go_on.load(); }));
      ended = true;
      return absl::OkStatus();
    });
    for (int job = 0; job < 100; ++job) {
      pool.Post([held](size_t) { return absl::OkStatus(); });
    }
    held.reset();
    ASSERT_TRUE(fakes::Await([&] { return begun.load(); }));
    release = std::jthread([&] { go_on = true; });
  }
  EXPECT_TRUE(ended);
  EXPECT_TRUE(by_jobs.expired());
}

TEST(WorkerPool, RejectsJobsAboveTheQueueLimit) {
  std::binary_semaphore begun(0);
  std::binary_semaphore go(0);
  WorkerPool pool(1, 2);
  ASSERT_TRUE(pool.Post([&](std::stop_token) {
    begun.release();
    go.acquire();
  }));
  begun.acquire();
  EXPECT_TRUE(pool.Post([](std::stop_token) {}));
  EXPECT_TRUE(pool.Post([](std::stop_token) {}));
  EXPECT_FALSE(pool.Post([](std::stop_token) {}));
  go.release();
  EXPECT_TRUE(pool.Wait(2).ok());
}

// Posts a job that runs until it is requested to stop, waits until it runs, and queues another one.
// Each of them adds 1 to `run` at its end.
void RunOneAndQueueOne(WorkerPool& pool, std::atomic<int>& run) {
  const auto begun = std::make_shared<std::binary_semaphore>(0);
  ASSERT_TRUE(pool.Post([begun, &run](std::stop_token stop) {
    begun->release();
    while (!stop.stop_requested()) {
      std::this_thread::yield();
    }
    ++run;
  }));
  begun->acquire();
  ASSERT_TRUE(pool.Post([&run](std::stop_token) { ++run; }));
}

TEST(WorkerPool, StopEndsRunningJobAndDropsQueue) {
  std::atomic<int> run = 0;
  WorkerPool pool(1, 10);
  RunOneAndQueueOne(pool, run);
  pool.Stop();
  EXPECT_EQ(run, 1);
  EXPECT_FALSE(pool.Post([](std::stop_token) {}));
  EXPECT_TRUE(pool.Wait(0).ok());
  EXPECT_TRUE(absl::IsCancelled(pool.Wait(1)));
  pool.Stop();
}

TEST(WorkerPool, DestructorStopsRunningJobAndDropsQueue) {
  std::atomic<int> run = 0;
  {
    WorkerPool pool(1, 10);
    RunOneAndQueueOne(pool, run);
  }
  EXPECT_EQ(run, 1);
}

TEST(ForEachBatch, VisitsEveryIndexOnce) {
  for (const size_t count : {0U, 1U, 7U, 8U, 9U, 64U}) {
    std::vector<std::atomic<int>> seen(count);
    const absl::Status status = ForEachBatch(3, count, 8, [&](size_t first, size_t last) {
      EXPECT_LE(last - first, 8U);
      for (size_t i = first; i < last; ++i) {
        ++seen[i];
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& each) { return each == 1; }));
  }
}

TEST(ForEachBatch, ReturnsErrorOfTheFirstFailedBatch) {
  const absl::Status status = ForEachBatch(4, 100, 10, [](size_t first, size_t) {
    return first < 30 ? absl::OkStatus() : absl::AbortedError(std::to_string(first));
  });
  EXPECT_EQ(status, absl::AbortedError("30"));
}

TEST(WorkerPool, ClampsNumberOfThreads) {
  EXPECT_EQ(WorkerPool(0).threads(), 1);
  EXPECT_EQ(WorkerPool(-5).threads(), 1);
  EXPECT_EQ(WorkerPool(1'000'000).threads(), kThreadsMax);
  EXPECT_GE(DefaultThreads(), 1);
  EXPECT_LE(DefaultThreads(), 4);
}

}  // namespace
}  // namespace cachewarm::bundle
