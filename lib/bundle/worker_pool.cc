// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/worker_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace cachewarm::bundle {
namespace {

constexpr int kUsefulThreads = 4;
constexpr int64_t kIdle = std::numeric_limits<int64_t>::max();

}  // namespace

int DefaultThreads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kUsefulThreads);
}

WorkerPool::WorkerPool(int threads, size_t queue_max) : queue_max_(queue_max) {
  const auto wanted = static_cast<size_t>(std::clamp(threads, 1, kThreadsMax));
  running_.assign(wanted, kIdle);
  threads_.reserve(wanted);
  for (size_t worker = 0; worker < wanted; ++worker) {
    try {
      threads_.emplace_back([this, worker] { Work(worker); });
    } catch (const std::system_error&) {
      break;  // the limit of processes is reached: continue with fewer threads
    }
  }
  if (threads_.empty()) {
    failed_ = -1;
    error_ = absl::ResourceExhaustedError(
        "no thread can be started: raise the limit of processes (pids) of this container");
  }
}

WorkerPool::~WorkerPool() {
  Stop();
}

void WorkerPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_.request_stop();
    waiting_.clear();
    if (error_.ok()) {
      failed_ = begun_;
      error_ = absl::CancelledError("the worker pool was stopped");
    }
  }
  posted_.notify_all();
  ended_.notify_all();
  threads_.clear();
}

bool WorkerPool::Post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_.ok() || waiting_.size() >= queue_max_) {
      return false;
    }
    waiting_.push_back(std::move(job));
  }
  posted_.notify_one();
  return true;
}

bool WorkerPool::Post(StoppableJob job) {
  return Post([job = std::move(job), stop = stop_.get_token()](size_t) {
    job(stop);
    return absl::OkStatus();
  });
}

absl::Status WorkerPool::Wait(int64_t job) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return HasEnded(job); });
  return failed_ <= job ? error_ : absl::OkStatus();
}

bool WorkerPool::HasEnded(int64_t job) const {
  const bool is_running = *std::min_element(running_.begin(), running_.end()) <= job;
  return !is_running && (job < begun_ || !error_.ok());
}

void WorkerPool::Work(size_t worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [&] { return stop_.stop_requested() || !waiting_.empty(); });
    if (stop_.stop_requested()) {
      return;
    }
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    const int64_t number = begun_++;
    running_[worker] = number;
    lock.unlock();
    absl::Status status = job(worker);
    lock.lock();
    running_[worker] = kIdle;
    if (!status.ok() && number < failed_) {
      failed_ = number;
      error_ = std::move(status);
      waiting_.clear();
    }
    ended_.notify_all();
  }
}

absl::Status ForEachBatch(int threads, size_t count, size_t batch,
                          const std::function<absl::Status(size_t first, size_t last)>& each) {
  WorkerPool pool(threads);
  int64_t jobs = 0;
  for (size_t first = 0; first < count; first += batch, ++jobs) {
    pool.Post([&each, first, last = std::min(first + batch, count)](size_t) {
      return each(first, last);
    });
  }
  return pool.Wait(jobs - 1);
}

}  // namespace cachewarm::bundle
