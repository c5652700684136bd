// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace cachewarm::bundle {

// Returns the number of processors, but at most four. More threads would not help: the sequential
// hashes of tar and blob become the bottleneck of packing and unpacking.
int DefaultThreads();

inline constexpr int kThreadsMax = 64;

// Runs jobs on a fixed number of threads. Jobs start in the order in which they were posted. After
// a failure no further job starts. If several jobs fail, the error of the one that was posted first
// is reported, so that the error does not depend on the number of threads. Thread-safe, except
// Stop().
class WorkerPool {
 public:
  // `worker` is the number of the thread that runs the job, from 0 to threads() - 1. State that
  // only this thread uses needs no lock.
  using Job = std::function<absl::Status(size_t worker)>;
  // A job that cannot fail and ends soon after Stop() was called.
  using StoppableJob = std::function<void(std::stop_token)>;

  // `threads` is clamped to 1 to kThreadsMax. At most `queue_max` jobs wait for a thread.
  explicit WorkerPool(int threads, size_t queue_max = std::numeric_limits<size_t>::max());
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  // Calls Stop().
  ~WorkerPool();

  // Returns the clamped number of threads. Fewer run if the system refuses to start more.
  int threads() const { return static_cast<int>(running_.size()); }

  // Queues a job. Jobs are numbered from 0 in the order of the calls. Returns false if it was not
  // queued: the queue is full, Stop() was called or a job has failed.
  bool Post(Job job);
  bool Post(StoppableJob job);
  // Blocks until `job` and all earlier jobs have ended or were dropped. Returns the error of the
  // first of these jobs that failed. A job may wait for earlier jobs, never for itself or a later
  // one.
  absl::Status Wait(int64_t job);
  // Drops the jobs that have not started, requests the running ones to stop and waits for them.
  void Stop();

 private:
  void Work(size_t worker);
  bool HasEnded(int64_t job) const;

  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable ended_;
  std::deque<Job> waiting_;
  int64_t begun_ = 0;             // number of jobs removed from waiting_
  std::vector<int64_t> running_;  // number of the job that each thread runs; idle: INT64_MAX
  // Number of the first job that failed or was dropped by Stop(); INT64_MAX if there is none, -1 if
  // no thread could be started.
  int64_t failed_ = std::numeric_limits<int64_t>::max();
  absl::Status error_;  // error of job number `failed_`
  const size_t queue_max_;
  std::stop_source stop_;
  std::vector<std::jthread> threads_;  // declared last: they use the other members
};

// Divides the indices [0, count) into ranges [first, last) of at most `batch` and calls `each` for
// every range, concurrently on `threads` threads. Returns the error of the first range that failed.
absl::Status ForEachBatch(int threads, size_t count, size_t batch,
                          const std::function<absl::Status(size_t first, size_t last)>& each);

}  // namespace cachewarm::bundle
