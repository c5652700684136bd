// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace cachewarm::bundle {

// As many workers as packing and unpacking gain from: beyond four the hashes that must be made in
// order are what takes the time.
int DefaultThreads();

inline constexpr int kThreadsMax = 64;

// A few threads that do jobs in the order in which they were posted. After a failure no further
// job begins; which error is reported does not depend on the number of threads. The queue has no
// bound of its own: who posts waits for an earlier job first. Thread-safe.
class WorkerPool {
 public:
  // `worker` counts from 0 to threads - 1: what belongs to a worker needs no lock.
  using Job = std::function<absl::Status(size_t worker)>;

  // `threads` is taken into 1 to kThreadsMax.
  explicit WorkerPool(int threads);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  // Forgets the jobs that have not begun and waits for the rest.
  ~WorkerPool();

  // What `threads` became; some of them may be missing where the system allows no more.
  int threads() const { return static_cast<int>(running_.size()); }

  // Jobs are numbered in this order from 0.
  void Post(Job job);
  // Blocks until `job` and all before it have ended or were given up; the error of the first of
  // them that failed. A job may wait for those posted before it, never for itself or a later one.
  absl::Status Wait(int64_t job);

 private:
  void Work(size_t worker);
  bool HasEnded(int64_t job) const;

  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable ended_;
  std::deque<Job> waiting_;
  int64_t begun_ = 0;             // the jobs below were taken out of waiting_
  std::vector<int64_t> running_;  // by worker
  int64_t failed_ = std::numeric_limits<int64_t>::max();
  absl::Status error_;  // of job `failed_`
  bool closing_ = false;
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

// Calls `each` for all indices below `count`, `batch` of them a job, on a crew of its own: with the
// first of a job and the one behind its last. The error of the first job that failed.
absl::Status ForEachBatch(int threads, size_t count, size_t batch,
                          const std::function<absl::Status(size_t first, size_t last)>& each);

}  // namespace cachewarm::bundle
