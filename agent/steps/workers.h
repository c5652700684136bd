// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace cachewarm::agent {

// Worker threads for long jobs: fetching and publishing. Thread-safe.
class Workers {
 public:
  using Job = std::function<void(std::stop_token)>;

  Workers(int threads, size_t queue_max);
  // Calls Stop().
  ~Workers();

  // Queues a job. Returns false if the queue is full or Stop() was called.
  bool Post(Job job);
  size_t threads() const { return threads_max_; }
  // Drops queued jobs, requests running jobs to stop and waits for them.
  void Stop();

 private:
  void Run(std::stop_token stop);

  const size_t threads_max_;
  const size_t queue_max_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Job> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace cachewarm::agent
